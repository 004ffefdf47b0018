// SPDX-License-Identifier: Apache-2.0
/* usage: orphans COUNT
 * Leaves COUNT children to process 1, in batches, and waits until /proc shows none of them: prints
 * "reaped COUNT". Whoever starts it bounds its time. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 100 };

static int processes(void)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir)))
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    (void)closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1, before = processes();

    for (int done = 0; done < count; done += BATCH) {
        pid_t middle = fork();

        if (middle < 0)
            return 1;
        if (middle == 0) {
            for (int i = 0; i < BATCH; i++)
                if (fork() == 0) {
                    /* Until the middle one is dead, so that it is process 1 that has to reap. */
                    while (getppid() != 1)
                        (void)nanosleep(&pause, NULL);
                    _exit(i);
                }
            _exit(0);
        }
        (void)waitpid(middle, NULL, 0);
        while (processes() > before)
            (void)nanosleep(&pause, NULL);
    }
    (void)printf("reaped %d\n", count);
    return 0;
}
