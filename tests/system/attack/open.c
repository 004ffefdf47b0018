// SPDX-License-Identifier: Apache-2.0
/* usage: open PATH...: prints "PATH WORKED" or "PATH ERROR" for each, having tried to open it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK);

        (void)printf("%s %s\n", argv[i], fd < 0 ? strerrorname_np(errno) : "WORKED");
        (void)close(fd);
    }
    return 0;
}
