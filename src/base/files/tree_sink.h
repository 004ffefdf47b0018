/* Makes a directory tree out of entries that somebody else tells of, who is not trusted: whatever
 * they say, nothing outside the directory is touched. An entry's directory must be one that was
 * told of before and is still open, so that no path is ever looked up; no link is followed. What
 * had a name before gives way to a file or link of that name; a directory is only added to. A file
 * has its name when it is whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct file_entry;
struct tree_sink;

struct tree_sink_options {
    bool keeps_owner; /* numeric owners; and set-uid bits, which otherwise are left out */
    bool has_uid;     /* what is made belongs to these; not with keeps_owner */
    unsigned uid, gid;
};

/* Everything goes below the directory fd, which is taken. */
struct tree_sink *tree_sink_new(int fd, const struct tree_sink_options *options);

/* Ends the file before it, if there is one. 0, -ENOTSUP for what cannot be copied (a pipe, a
 * device), -EBADMSG for a path that cannot be meant, or another -errno. After the first failure
 * only free may be called; but after -ENOTSUP one may go on. */
int tree_sink_entry(struct tree_sink *sink, const struct file_entry *entry);

/* More bytes of the file that was told of last. */
int tree_sink_data(struct tree_sink *sink, const void *data, size_t len);

/* All was told. */
int tree_sink_finish(struct tree_sink *sink);

/* Accepts NULL. A file that is not whole leaves nothing behind. */
void tree_sink_free(struct tree_sink *sink);
