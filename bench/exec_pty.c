// SPDX-License-Identifier: Apache-2.0
/* Measures the minimal cost of an echo: a byte written to the master of a pty pair and read back
 * from it. Prints one line of microseconds per sample.
 *
 * usage: exec_pty COUNT */
#include <err.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    int master, slave;

    if (count <= 0)
        errx(2, "usage: exec_pty COUNT");
    if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
        err(1, "openpty");
    for (long i = 0; i < count; i++) {
        double start = now_us();
        char byte = 'x';

        if (write(master, &byte, 1) != 1 || read(master, &byte, 1) != 1)
            err(1, "the terminal");
        (void)printf("%.1f\n", now_us() - start);
    }
    return 0;
}
