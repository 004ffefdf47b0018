// SPDX-License-Identifier: Apache-2.0
#include "host/guest_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

enum { BACKLOG = 4, NAME_BYTES = RUNTIME_ID_MAX + 8 };

static const char *file_name(char *into, const char *machine)
{
    (void)snprintf(into, NAME_BYTES, "%s.sock", machine);
    return into;
}

/* By way of the directory's descriptor: however long the state directory's path is, this fits. */
static void fill_address(struct sockaddr_un *address, int dir_fd, const char *machine)
{
    char name[NAME_BYTES];

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", dir_fd,
                   file_name(name, machine));
}

int guest_socket_listen(int dir_fd, const char *machine)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return -errno;
    guest_socket_remove(dir_fd, machine);
    fill_address(&address, dir_fd, machine);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int guest_socket_connect(int dir_fd, const char *machine)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return -errno;
    fill_address(&address, dir_fd, machine);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

void guest_socket_remove(int dir_fd, const char *machine)
{
    char name[NAME_BYTES];

    (void)unlinkat(dir_fd, file_name(name, machine), 0);
}
