// SPDX-License-Identifier: Apache-2.0
/* Ways between processes that are no files: sockets with a name, SysV and POSIX objects, keys,
 * terminals. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "prove/prove.h"

void attempt_abstract_socket(const struct facts *facts, struct result *ret)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(facts->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", facts->socket);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) < 0)
        held(ret, "connect");
    else
        token_read(facts, fd, ret, "read from the socket");
}

void attempt_shared_memory(const struct facts *facts, struct result *ret)
{
    int id = facts->segment ? shmget((key_t)facts->segment, 0, 0) : -1;
    const void *memory = id < 0 ? (const void *)-1 : shmat(id, NULL, SHM_RDONLY);

    if (memory == (const void *)-1)
        held(ret, "shmget");
    else
        token_search(facts, memory, TOKEN_BYTES, ret, "read the segment");
}

void attempt_message_queue(const struct facts *facts, struct result *ret)
{
    mqd_t queue;

    if (!*facts->queue) {
        errno = 0;
        absent(ret, "there is no queue");
        return;
    }
    queue = mq_open(facts->queue, O_RDONLY | O_CLOEXEC);
    if (queue == (mqd_t)-1)
        held(ret, "mq_open");
    else
        reached(ret, "opened the queue");
}

void attempt_key(const struct facts *facts, struct result *ret)
{
    char data[TOKEN_BYTES * 2] = "";
    long n;

    if (facts->key == 0) {
        errno = 0;
        absent(ret, "there is no key");
        return;
    }
    n = syscall(SYS_keyctl, KEYCTL_READ, (long)facts->key, data, sizeof(data));
    if (n < 0)
        held(ret, "keyctl");
    else
        token_search(facts, data, sizeof(data), ret, "read the key");
}

/* Its own terminal stands for the one that would have started the sandbox. */
void attempt_terminal_input(const struct facts *facts, struct result *ret)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal = -1;
    const char *name;

    (void)facts;
    (void)setsid();
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 && (name = ptsname(master)))
        terminal = open(name, O_RDWR | O_CLOEXEC);
    if (terminal >= 0 && ioctl(terminal, TIOCSTI, "x") == 0)
        reached(ret, "TIOCSTI");
    else
        held(ret, terminal < 0 ? "open a terminal" : "TIOCSTI");
}
