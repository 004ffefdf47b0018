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

/* Does the same with a stack of the child's own, and waits in a way that a stopped child cannot
 * prolong: one that others stop before its exec is continued, and killed when that goes on for a
 * second (-EINTR) or it needs more than 30 (-ETIMEDOUT). The kernel's own wait for a vfork ends for
 * the child alone, so any process that may signal the child could suspend the caller for ever. That
 * bound is missing on kernels without clone3, where the caller waits as for a vfork. */
pid_t vclone_bounded(struct clone_args *args, void (*child)(void *), void *argument);
