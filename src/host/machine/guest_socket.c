// SPDX-License-Identifier: Apache-2.0
#include "host/machine/guest_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define SUFFIX ".sock"

enum { BACKLOG = 4, NAME_BYTES = RUNTIME_ID_MAX + 8 };

/* The id of a second machine has a slash, for which its socket has another sign. */
static void sign_replace(char *name, char from, char to)
{
    char *sign = strchr(name, from);

    if (sign)
        *sign = to;
}

static const char *socket_name(char *into, const char *machine)
{
    (void)snprintf(into, NAME_BYTES, "%s" SUFFIX, machine);
    sign_replace(into, '/', '+');
    return into;
}

/* Uses the path /proc/self/fd/N/NAME: sun_path is too short for the path of some state directories.
 */
static void socket_fill_address(struct sockaddr_un *address, int dir_fd, const char *machine)
{
    char name[NAME_BYTES];

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", dir_fd,
                   socket_name(name, machine));
}

int guest_socket_listen(int dir_fd, const char *machine)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return -errno;
    guest_socket_remove(dir_fd, machine);
    socket_fill_address(&address, dir_fd, machine);
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
    socket_fill_address(&address, dir_fd, machine);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

void guest_socket_remove(int dir_fd, const char *machine)
{
    char name[NAME_BYTES];

    (void)unlinkat(dir_fd, socket_name(name, machine), 0);
}

/* Returns the machine whose socket has this name, or "". */
static const char *socket_machine(char *into, const char *name)
{
    size_t len = strlen(name), suffix = strlen(SUFFIX);

    *into = '\0';
    if (len > suffix && len - suffix < RUNTIME_ID_MAX && strcmp(name + len - suffix, SUFFIX) == 0)
        (void)snprintf(into, RUNTIME_ID_MAX, "%.*s", (int)(len - suffix), name);
    sign_replace(into, '+', '/');
    return into;
}

int guest_socket_sweep(int dir_fd, bool (*keep)(const char *machine, void *context), void *context)
{
    int fd = openat(dir_fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    char machine[RUNTIME_ID_MAX];
    struct dirent *entry;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir)))
        if (*socket_machine(machine, entry->d_name) && !keep(machine, context))
            (void)unlinkat(dir_fd, entry->d_name, 0);
    (void)closedir(dir);
    return 0;
}
