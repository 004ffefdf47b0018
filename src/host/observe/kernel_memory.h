/* What a machine holds in the kernel that its memory limit does not cover. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct machine;

/* Returns the bytes that its sockets hold so. Exact, but 0 for a machine with few sockets. Moves
 * the calling thread to the machine's network namespace; own_netns is the daemon's (netns_id). */
uint64_t kernel_memory_of_sockets(struct machine *machine, ino_t own_netns);

/* Estimates the bytes that its processes hold so: lists of poll(2) and select(2), the entries of
 * directories that are open on overlays, locks of files (with counts_locks), and a little for each
 * descriptor and thread. May take some milliseconds for a machine with thousands of them. */
uint64_t kernel_memory_of_processes(struct machine *machine, bool counts_locks);

/* Returns whether the locks of files on the whole machine take so many bytes, or it is unknown. */
bool kernel_memory_has_locks(uint64_t bytes);
