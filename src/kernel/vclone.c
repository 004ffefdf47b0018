// SPDX-License-Identifier: Apache-2.0
#include "kernel/vclone.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHILD_STACK_BYTES = 32 * 1024,
    TICK_MS = 10,
    STOPPED_TICKS_MAX = 100, /* 1 s */
    TICKS_MAX = 3000,        /* 30 s; counted, so that time in which both are frozen does not */
};

/* The system call is inlined: it returns twice on the same stack, and the child would overwrite a
 * return address below this frame. */
static inline __attribute__((always_inline)) long clone3_inline(struct clone_args *args)
{
#if defined(__x86_64__)
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)args;
    register long second __asm__("x1") = sizeof(*args);
    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    return first;
#else
#error "vclone: this processor has no clone3 here yet"
#endif
}

ON_BORROWED_MEMORY pid_t vclone(struct clone_args *args, void (*child)(void *), void *argument)
{
    long r;

    args->flags |= CLONE_VM | CLONE_VFORK;
    r = clone3_inline(args);
    if (r == 0) {
        child(argument);
        _exit(127);
    }
    return (pid_t)r;
}

struct child_call {
    void (*child)(void *);
    void *argument;
};

static _Noreturn ON_BORROWED_MEMORY void child_run(struct child_call *call)
{
    call->child(call->argument);
    _exit(127);
}

/* Arguments of clone3 or clone, in the order of their registers. */
struct clone_call {
    long number;
    long first, second, third, fourth, fifth;
};

/* The child begins in child_run, on the stack that the arguments name. */
static inline __attribute__((always_inline)) long clone_on_stack(const struct clone_call *clone,
                                                                 struct child_call *call)
{
#if defined(__x86_64__)
    register long fourth __asm__("r10") = clone->fourth;
    register long fifth __asm__("r8") = clone->fifth;
    long r;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "mov %[call], %%rdi\n\t"
                     "call *%[run]\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(r)
                     : "0"(clone->number), "D"(clone->first), "S"(clone->second), "d"(clone->third),
                       "r"(fourth), "r"(fifth), [call] "b"(call), [run] "r"(child_run)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long number __asm__("x8") = clone->number;
    register long first __asm__("x0") = clone->first;
    register long second __asm__("x1") = clone->second;
    register long third __asm__("x2") = clone->third;
    register long fourth __asm__("x3") = clone->fifth; /* this processor has the two exchanged */
    register long fifth __asm__("x4") = clone->fourth;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x0, %[call]\n\t"
                     "blr %[run]\n\t"
                     "brk 0\n"
                     "1:"
                     : "+r"(first)
                     : "r"(number), "r"(second), "r"(third), "r"(fourth),
                       "r"(fifth), [call] "r"(call), [run] "r"(child_run)
                     : "x30", "memory");
    return first;
#endif
}

/* Makes a system call without errno, which is the child's, too. */
static long call_raw(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

/* Returns the present CLD_STOPPED, CLD_EXITED and so on of the child, or 0 while it runs. */
static int child_condition(pid_t pid)
{
    siginfo_t info = { 0 };

    (void)call_raw(SYS_waitid, P_PID, pid, (long)&info,
                   WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL, 0);
    return info.si_pid == pid ? info.si_code : 0;
}

/* Waits until the kernel clears *is_borrowed, because the child executes a program or ends. */
static int child_wait(const uint32_t *is_borrowed, pid_t pid)
{
    static const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
    int stopped = 0;

    for (int ticks = 0; __atomic_load_n(is_borrowed, __ATOMIC_ACQUIRE) != 0; ticks++) {
        int condition;

        if (call_raw(SYS_futex, (long)is_borrowed, FUTEX_WAIT, 1, (long)&tick, 0) != -ETIMEDOUT)
            continue;
        condition = child_condition(pid);
        if (condition == CLD_STOPPED && ++stopped < STOPPED_TICKS_MAX)
            (void)call_raw(SYS_kill, pid, SIGCONT, 0, 0, 0);
        else if (condition == CLD_STOPPED)
            return -EINTR;
        else if (condition != 0)
            return 0;
        else if (ticks >= TICKS_MAX)
            return -ETIMEDOUT;
    }
    return 0;
}

ON_BORROWED_MEMORY pid_t vclone_bounded(struct clone_args *args, void (*child)(void *),
                                        void *argument)
{
    _Alignas(16) char stack[CHILD_STACK_BYTES];
    struct child_call call = { child, argument };
    const struct clone_call newer = { .number = SYS_clone3,
                                      .first = (long)args,
                                      .second = sizeof(*args) };
    struct clone_call older = { .number = SYS_clone };
    uint32_t is_borrowed = 1;
    int failure;
    long r;

    args->flags |= CLONE_VM | CLONE_CHILD_CLEARTID;
    args->child_tid = (uintptr_t)&is_borrowed;
    args->stack = (uintptr_t)stack;
    args->stack_size = sizeof(stack);
    r = clone_on_stack(&newer, &call);
    /* gVisor has clone only, which knows no cgroups, and does not clear the word at an exec. */
    if (r == -ENOSYS && !(args->flags & CLONE_INTO_CGROUP)) {
        older.first = (long)((args->flags & ~(uint64_t)CLONE_CHILD_CLEARTID) | CLONE_VFORK |
                             args->exit_signal);
        older.second = (long)(args->stack + args->stack_size);
        return (pid_t)clone_on_stack(&older, &call);
    }
    if (r < 0)
        return (pid_t)r;
    failure = child_wait(&is_borrowed, (pid_t)r);
    if (failure == 0)
        return (pid_t)r;
    (void)kill((pid_t)r, SIGKILL);
    (void)waitpid((pid_t)r, NULL, __WALL);
    return failure;
}
