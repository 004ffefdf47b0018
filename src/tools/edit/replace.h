/* A file's content, replaced as a whole: whoever looks sees the old or the new. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct iovec;
struct tool_reply;

enum { PARTS_MAX = 3 };

/* Where a file is that is to be written, links followed. */
struct place {
    int dir_fd;
    char path[PATH_MAX]; /* behind all links */
    const char *name;    /* the end of it */
    bool is_new;
    struct stat old; /* of what is there */
};

/* Finds it: 0, or -errno, -EINVAL for what is there and no regular file; place_done in any case. */
int place_find(const char *full_path, struct place *ret);
void place_done(struct place *place);

/* Writes the parts, at most PARTS_MAX, one behind the other. What was there keeps its mode and
 * owner; a new file gets 0644. if_still: -ESTALE when what is there is not what place.old says any
 * more. 0 or -errno. */
int place_write(const struct place *place, const struct iovec *parts, size_t count, bool if_still);

/* Notes in the reply that it was created or written. */
void place_tell(const struct place *place, struct tool_reply *reply);

/* Makes the directories above it that are missing and notes them in the reply: 0 or -errno. */
int place_make_dirs(const char *full_path, struct tool_reply *reply);
