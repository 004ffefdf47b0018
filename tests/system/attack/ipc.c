// SPDX-License-Identifier: Apache-2.0
/* usage: ipc make|find|remove
 * make: an abstract socket, SysV shared memory, semaphores and messages, POSIX shared memory and a
 * message queue, all under known names; holds them until its input ends.
 * find: prints the names of those it finds.
 * remove: removes what can outlive its maker. */
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEY = 0x484f4c54 };

static int abstract(int make)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0holt-attack" };
    socklen_t len = sizeof(sa_family_t) + 12;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (!make)
        return connect(fd, (struct sockaddr *)&address, len);
    return bind(fd, (struct sockaddr *)&address, len) < 0 ? -1 : listen(fd, 1);
}

static int shared_memory(int make)
{
    return shmget(KEY, 4096, make ? IPC_CREAT | 0666 : 0);
}
static int semaphores(int make)
{
    return semget(KEY, 1, make ? IPC_CREAT | 0666 : 0);
}
static int messages(int make)
{
    return msgget(KEY, make ? IPC_CREAT | 0666 : 0);
}
static int posix_memory(int make)
{
    return open("/dev/shm/holt-attack", make ? O_CREAT | O_RDWR : O_RDWR, 0666);
}
static int queue(int make)
{
    return (int)syscall(SYS_mq_open, "holt-attack", make ? O_CREAT | O_RDWR : O_RDWR, 0666, NULL);
}

static const struct {
    const char *name;
    int (*open)(int make);
} kinds[] = {
    { "abstract", abstract }, { "shared_memory", shared_memory }, { "semaphores", semaphores },
    { "messages", messages }, { "posix_memory", posix_memory },   { "queue", queue },
};

int main(int argc, char **argv)
{
    int make = argc > 1 && strcmp(argv[1], "make") == 0, r = 0;
    char byte;

    if (argc > 1 && strcmp(argv[1], "remove") == 0) {
        (void)shmctl(shared_memory(0), IPC_RMID, NULL);
        (void)semctl(semaphores(0), 0, IPC_RMID);
        (void)msgctl(messages(0), IPC_RMID, NULL);
        (void)unlink("/dev/shm/holt-attack");
        (void)syscall(SYS_mq_unlink, "holt-attack");
        return 0;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int fd = kinds[i].open(make);

        if (make && fd < 0)
            r = 1;
        if (fd >= 0)
            (void)printf("%s ", kinds[i].name);
    }
    (void)printf("\n");
    (void)fflush(stdout);
    while (make && read(0, &byte, 1) > 0)
        continue;
    return r;
}
