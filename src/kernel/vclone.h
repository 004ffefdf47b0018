/* clone3 like vfork: no page table is copied, however large the caller is. */
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

/* Code that runs on the parent's memory must be invisible to sanitizers. */
#define ON_BORROWED_MEMORY                                                                         \
    __attribute__((noinline, no_sanitize("address", "undefined"), no_sanitize_thread))

/* Clones with args->flags plus CLONE_VM and CLONE_VFORK and runs child(argument) on this thread's
 * stack while this thread is suspended. child makes only system calls, allocates nothing, takes no
 * lock, and ends in exec or _exit. Its writes are visible here. The caller should block all
 * signals. Returns the pid or -errno. */
pid_t vclone(struct clone_args *args, void (*child)(void *), void *argument);
