/* clone3 in the manner of vfork: no page table is copied, however large the caller is. */
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

/* Code that runs on borrowed memory must not be watched by a sanitizer's bookkeeping. */
#define ON_BORROWED_MEMORY                                                                         \
    __attribute__((noinline, no_sanitize("address", "undefined"), no_sanitize_thread))

/* Clones with args->flags plus CLONE_VM and CLONE_VFORK and runs child(argument) there, on this
 * thread's stack while this thread waits. child makes system calls only, allocates nothing, takes
 * no lock, and ends in exec or _exit. What it writes is seen here. All signals should be blocked.
 * Returns the pid or -errno. */
pid_t vclone(struct clone_args *args, void (*child)(void *), void *argument);
