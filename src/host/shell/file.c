// SPDX-License-Identifier: Apache-2.0
#include "host/shell/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/shell.h"

enum { PATH_SIZE = 512, FILE_MODE = 0600, DIR_MODE = 0700 };

#define TEMPORARY ".new"

static int shell_dir_open(const struct sandbox *sandbox, const char *name)
{
    char path[PATH_SIZE];
    int fd;

    (void)snprintf(path, sizeof(path), "shells/%s%s%s", sandbox->info.id, name ? "/" : "",
                   name ? name : "");
    fd = openat(sandbox->host->state_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int shell_dir_make(const struct sandbox *sandbox, const char *name)
{
    int state = sandbox->host->state_fd;
    char path[PATH_SIZE];

    (void)mkdirat(state, "shells", DIR_MODE);
    (void)snprintf(path, sizeof(path), "shells/%s", sandbox->info.id);
    (void)mkdirat(state, path, DIR_MODE);
    (void)snprintf(path, sizeof(path), "shells/%s/%s", sandbox->info.id, name);
    (void)mkdirat(state, path, DIR_MODE);
    return shell_dir_open(sandbox, name);
}

static int file_replace(int dir_fd, const char *file, const void *data, size_t len)
{
    cleanup_close int fd =
        openat(dir_fd, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, data, len);
    if (r == 0 && renameat(dir_fd, TEMPORARY, dir_fd, file) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir_fd, TEMPORARY, 0);
    return r;
}

void shell_file_record(struct sandbox *sandbox, const char *name, enum shell_kind kind,
                       const struct process *process)
{
    cleanup_close int dir_fd = shell_dir_make(sandbox, name);
    char line[SHELL_MACHINE_MAX + 64];
    int len = snprintf(line, sizeof(line), "%s %s %u\n", shell_kind_name(kind),
                       process->machine->id, process->number);

    if (dir_fd >= 0)
        (void)file_replace(dir_fd, "process", line, (size_t)len);
}

static enum shell_kind shell_kind_parse(const char *word)
{
    if (strcmp(word, shell_kind_name(SHELL_BASH)) == 0)
        return SHELL_BASH;
    return strcmp(word, shell_kind_name(SHELL_SH)) == 0 ? SHELL_SH : SHELL_NONE;
}

int shell_file_find(struct sandbox *sandbox, const char *name, struct shell_record *ret)
{
    cleanup_close int dir_fd = shell_dir_open(sandbox, name);
    cleanup_with(buf_done) struct buf line = BUF_INIT(256);
    char kind[8], number[16];
    uint64_t process;

    if (dir_fd < 0 || file_read_at(dir_fd, "process", &line) < 0 || line.len == 0)
        return -ENOENT;
    if (sscanf(line.data, "%7s %63s %15s", kind, ret->machine, number) != 3 ||
        parse_u64(number, &process) < 0 || process > UINT32_MAX)
        return -ENOENT;
    ret->kind = shell_kind_parse(kind);
    ret->process = (uint32_t)process;
    return 0;
}

/* Removes the directory, unless snapshots still have states in it. */
static void shell_dir_remove(const struct sandbox *sandbox, const char *name)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "shells/%s/%s", sandbox->info.id, name);
    (void)unlinkat(sandbox->host->state_fd, path, AT_REMOVEDIR);
}

static void shell_file_unlink(struct sandbox *sandbox, const char *name, const char *file)
{
    cleanup_close int dir_fd = shell_dir_open(sandbox, name);

    if (dir_fd >= 0)
        (void)unlinkat(dir_fd, file, 0);
}

void shell_file_remove(struct sandbox *sandbox, const char *name)
{
    shell_file_unlink(sandbox, name, "process");
    shell_file_unlink(sandbox, name, "now");
    shell_dir_remove(sandbox, name);
}

int shell_file_read_now(struct sandbox *sandbox, const char *name, struct buf *ret)
{
    cleanup_close int dir_fd = shell_dir_open(sandbox, name);

    return dir_fd < 0 ? dir_fd : file_read_at(dir_fd, "now", ret);
}

int shell_file_write_now(struct sandbox *sandbox, const char *name, const struct buf *state)
{
    cleanup_close int dir_fd = shell_dir_make(sandbox, name);

    return dir_fd < 0 ? dir_fd : file_replace(dir_fd, "now", state->data, state->len);
}

static void snapshot_file_name(char name[PATH_SIZE], const char *snapshot)
{
    (void)snprintf(name, PATH_SIZE, "at-%s", snapshot);
}

/* Makes `to` a hard link to the file `from`, atomically. */
static int file_link_over(int dir_fd, const char *from, const char *to)
{
    (void)unlinkat(dir_fd, TEMPORARY, 0);
    if (linkat(dir_fd, from, dir_fd, TEMPORARY, 0) < 0 ||
        renameat(dir_fd, TEMPORARY, dir_fd, to) < 0)
        return -errno;
    /* rename(2) does nothing if both names are links to the same file. */
    (void)unlinkat(dir_fd, TEMPORARY, 0);
    return 0;
}

int shell_file_link_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot)
{
    cleanup_close int dir_fd = shell_dir_open(sandbox, name);
    char at[PATH_SIZE];

    snapshot_file_name(at, snapshot);
    return dir_fd < 0 ? dir_fd : file_link_over(dir_fd, "now", at);
}

int shell_file_restore_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot)
{
    cleanup_close int dir_fd = shell_dir_open(sandbox, name);
    char at[PATH_SIZE];

    snapshot_file_name(at, snapshot);
    return dir_fd < 0 ? dir_fd : file_link_over(dir_fd, at, "now");
}

void shell_file_drop_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot)
{
    char at[PATH_SIZE];

    snapshot_file_name(at, snapshot);
    shell_file_unlink(sandbox, name, at);
    shell_dir_remove(sandbox, name);
}

void shell_file_each(struct sandbox *sandbox, shell_file_fn *each, void *context)
{
    int fd = shell_dir_open(sandbox, NULL);
    const struct dirent *entry;
    DIR *dir;

    if (fd < 0)
        return;
    dir = fdopendir(fd);
    if (!dir) {
        (void)fd_close(fd);
        return;
    }
    while ((entry = readdir(dir)))
        if (is_handle(entry->d_name, SHELL_NAME_MAX))
            each(context, entry->d_name);
    (void)closedir(dir);
}

void shell_file_remove_all(struct sandbox *sandbox)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "shells/%s", sandbox->info.id);
    (void)tree_remove_at(sandbox->host->state_fd, path);
}
