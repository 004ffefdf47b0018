// SPDX-License-Identifier: Apache-2.0
/* Prints the numbers of the descriptors this process was started with. */
#include <fcntl.h>
#include <stdio.h>

int main(void)
{
    for (int fd = 0; fd < 65536; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            (void)printf("%d ", fd);
    return 0;
}
