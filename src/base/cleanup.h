/* Ownership: declare a local owner with one of these macros and transfer it with TAKE_*. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_ptr(void *slot)
{
    free(*(void **)slot);
}

static inline void cleanup_close_fd(const int *fd)
{
    /* Not retried on EINTR: Linux has already released the descriptor. */
    if (*fd >= 0)
        (void)close(*fd);
}

#define cleanup_with(fn) __attribute__((__cleanup__(fn)))
#define cleanup_free cleanup_with(cleanup_free_ptr)
#define cleanup_close cleanup_with(cleanup_close_fd)

/* Defines <fn>_slot for cleanup_with: a local of this pointer type that is not NULL goes to fn().
 */
#define DEFINE_CLEANUP(fn, type)                                                                   \
    static inline void fn##_slot(type *slot)                                                       \
    {                                                                                              \
        if (*slot)                                                                                 \
            (void)fn(*slot);                                                                       \
    }                                                                                              \
    struct err /* takes the semicolon behind the macro */

DEFINE_CLEANUP(closedir, DIR *);

#define TAKE_PTR(ptr)                                                                              \
    ({                                                                                             \
        __typeof__(ptr) taken_ = (ptr);                                                            \
        (ptr) = NULL;                                                                              \
        taken_;                                                                                    \
    })

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -EBADF;                                                                             \
        taken_;                                                                                    \
    })

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Closes fd if it is open and returns the value to store in its place: fd = fd_close(fd). */
static inline int fd_close(int fd)
{
    cleanup_close_fd(&fd);
    return -EBADF;
}
