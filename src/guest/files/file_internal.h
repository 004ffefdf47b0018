/* What the files of a file worker share. */
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
    size_t taken; /* of it */
    struct file_parser parser;
    struct buf out;
    struct names names;
    uint64_t capabilities; /* that it has as root */
    uint32_t uid, gid;     /* on whose behalf the present request is */
    char home[NAMES_HOME_MAX + 1];
    bool has_failed;    /* the present request has */
    bool wants_details; /* in the entries of its answer */
    bool gives;         /* it acts as root, for another */
};

/* The next piece from the daemon: 0, or -errno when there will be none. */
int worker_next(struct worker *worker, struct file_piece *ret);

/* Sends what is in worker->out: 0 or -errno. */
int worker_flush(struct worker *worker);

/* The same if it is much. */
int worker_flush_some(struct worker *worker);

/* Says that the present request has failed. 0, or -errno when the daemon is gone. */
int worker_fail(struct worker *worker, int r, const char *path, const char *why);

/* An answer, with the names of its owner and with details if they are wanted: 0 or -errno. */
int worker_put_entry(struct worker *worker, const char *full_path, const struct file_entry *entry);

/* stat and an answer. */
int worker_answer_entry(struct worker *worker, const char *full_path, const char *path,
                        bool follows);

/* The path with the workspace in front of a relative one: 0 or -ENAMETOOLONG. */
int worker_path(const char *path, char ret[PATH_MAX]);

/* Makes the missing directories above a path: 0 or -errno. */
int worker_make_parents(const char *full_path, mode_t mode);

/* The metadata of what is at a path, as wire/file.h has it: how many bytes, at most size. What does
 * not fit, or has a NUL in it, is left out. */
size_t meta_read(const char *full_path, bool follows, char *ret, size_t size);

/* The file has this metadata from now on, and no other: 0 or -errno. */
int meta_replace(int fd, const char *meta, size_t len);

/* Each does one request; -errno when the daemon is gone. */
typedef int file_fn(struct worker *worker, const struct file_request *request);

file_fn file_stat, file_list, file_read, file_write, file_mkdir, file_move, file_remove, file_pull,
    file_push, file_watch, file_hub;
