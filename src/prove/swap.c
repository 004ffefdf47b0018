// SPDX-License-Identifier: Apache-2.0
/* Exchanges a directory and a link to another one until standard input ends: what is meant to meet
 * a program that checks a path first and opens it then. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prove/prove.h"

enum { PATH_BYTES = 512, ROUNDS = 1000 };

int swap_run(const char *where, const char *target)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char directory[PATH_BYTES], file[PATH_BYTES + 16], other[PATH_BYTES];
    int fd;

    (void)snprintf(directory, sizeof(directory), "%s/swap", where);
    (void)snprintf(other, sizeof(other), "%s/swap-link", where);
    (void)snprintf(file, sizeof(file), "%s/canary", directory);
    if (mkdir(directory, 0700) < 0 || symlink(target, other) < 0) {
        perror(where);
        return 1;
    }
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)!write(fd, "mine\n", 5);
    (void)close(fd);
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (poll(&input, 1, 0) == 0)
        for (int i = 0; i < ROUNDS; i++)
            if (renameat2(AT_FDCWD, directory, AT_FDCWD, other, RENAME_EXCHANGE) < 0) {
                (void)rename(directory, file); /* gVisor has no exchange: the link stays in place */
                (void)usleep(1000);
            }
    return 0;
}
