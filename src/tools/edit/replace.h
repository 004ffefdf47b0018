/* Replaces the content of a file atomically: a reader sees the old or the new content. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct iovec;
struct tool_reply;

enum { PARTS_MAX = 3 };

/* The file to write, after following symbolic links. */
struct write_target {
    int dir_fd;
    char path[PATH_MAX]; /* without a link at its end */
    const char *name;    /* its last component */
    bool is_new;
    struct stat old; /* of the existing file */
};

/* Finds the file to write. Returns 0, or -errno; -EINVAL: it is not a regular file. The caller
 * calls target_done in both cases. */
int target_find(const char *full_path, struct write_target *ret);
void target_done(struct write_target *target);

/* Writes the concatenated parts, at most PARTS_MAX. An existing file keeps its mode and owner; a
 * new one gets mode 0644. With if_unchanged it returns -ESTALE when the file has changed since
 * target_find. Returns 0 or -errno. */
int target_write(const struct write_target *target, const struct iovec *parts, size_t count,
                 bool if_unchanged);

/* Adds the created or written file to the changes of the reply. */
void target_report(const struct write_target *target, struct tool_reply *reply);

/* Creates missing parent directories and adds them to the changes of the reply. Returns 0 or
 * -errno. */
int target_make_dirs(const char *full_path, struct tool_reply *reply);
