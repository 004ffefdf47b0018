// SPDX-License-Identifier: Apache-2.0
/* The payload of every measured sandbox: prints its argument, if any, and exits. It uses no libc,
 * because the start of glibc would cost as much as the sandbox. */
#include <stddef.h>

#if defined(__x86_64__)
enum { CALL_WRITE = 1, CALL_EXIT = 60 };
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call start_c\n");

static long call3(long number, long a, long b, long c)
{
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return r;
}
#elif defined(__aarch64__)
enum { CALL_WRITE = 64, CALL_EXIT = 93 };
__asm__(".globl _start\n_start: mov x0, sp\n and sp, x0, -16\n bl start_c\n");

static long call3(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#endif

_Noreturn void start_c(const long *stack);

/* The initial stack: argc, then the argument pointers. */
__attribute__((used)) _Noreturn void start_c(const long *stack)
{
    if (stack[0] > 1) {
        const char *text = (const char *)stack[2];
        long len = 0;

        while (text[len])
            len++;
        (void)call3(CALL_WRITE, 1, (long)text, len);
        (void)call3(CALL_WRITE, 1, (long)"\n", 1);
    }
    for (;;)
        (void)call3(CALL_EXIT, 0, 0, 0);
}
