/* Internals shared by the files of a file worker. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "guest/process/names.h"
#include "wire/file.h"

struct worker {
    int fd;
    struct buf in;
    size_t taken; /* parsed bytes at the start of `in` */
    struct file_parser parser;
    struct buf out;
    struct names names;
    uint64_t capabilities; /* as root */
    uint32_t uid, gid;     /* user of the current request */
    char home[NAMES_HOME_MAX + 1];
    bool has_failed;      /* the current request has failed */
    bool wants_details;   /* the request asked for detailed entries */
    bool gives_ownership; /* acts as root, new files belong to uid and gid */
};

/* Receives the next piece from the daemon. Returns 0, or -errno if the daemon has hung up. */
int worker_next(struct worker *worker, struct file_piece *ret);

/* Sends worker->out. Returns 0 or -errno. */
int worker_flush(struct worker *worker);

/* Sends worker->out if it is large. Returns 0 or -errno. */
int worker_flush_if_large(struct worker *worker);

/* Replies that the current request has failed. Returns 0, or -errno if the daemon has hung up. */
int worker_fail(struct worker *worker, int r, const char *path, const char *why);

/* Queues an entry with the names of its owner, and with details if the request asked for them.
 * Returns 0 or -errno. */
int worker_put_entry(struct worker *worker, const char *full_path, const struct file_entry *entry);

/* Stats the path and replies with its entry. Returns 0 or -errno. */
int worker_reply_entry(struct worker *worker, const char *full_path, const char *path,
                       bool follows);

/* Makes a path absolute, relative to the workspace. Returns 0 or -ENAMETOOLONG. */
int worker_path(const char *path, char ret[PATH_MAX]);

/* Creates the missing parent directories of a path. Returns 0 or -errno. */
int worker_make_parents(const char *full_path, mode_t mode);

/* Reads the metadata of a path in the format of wire/file.h, at most size bytes. Returns the
 * length. Omits values that do not fit or contain NUL. */
size_t meta_read(const char *full_path, bool follows, char *ret, size_t size);

/* Replaces all metadata of the file. Returns 0 or -errno. */
int meta_replace(int fd, const char *meta, size_t len);

/* Executes one request. Returns -errno if the daemon has hung up. */
typedef int file_fn(struct worker *worker, const struct file_request *request);

file_fn file_stat, file_list, file_read, file_write, file_mkdir, file_move, file_remove, file_pull,
    file_push, file_watch, file_hub;
