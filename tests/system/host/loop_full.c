// SPDX-License-Identifier: Apache-2.0
/* For LD_PRELOAD: a machine that has no free loop device, for one program only. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/loop.h>
#include <stdarg.h>

int ioctl(int fd, unsigned long request, ...);

int ioctl(int fd, unsigned long request, ...)
{
    int (*real)(int fd, unsigned long request, ...) =
        (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request == LOOP_CTL_GET_FREE) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, request, argument);
}
