/* Builds a directory tree from entries of an untrusted sender: nothing outside the directory is
 * touched, whatever the entries say. The directory of an entry must be an earlier entry that is
 * still open, so no path is ever looked up and no link is followed. A file replaces an existing
 * regular file of its name, a link also a link; an existing directory is extended, and a pipe,
 * socket or device stays. A file gets its name once it is complete. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct file_entry;
struct tree_sink;

struct tree_sink_options {
    bool keeps_owner;    /* numeric owners, and set-user-ID bits, which are dropped otherwise */
    bool replaces_links; /* a file replaces a symbolic link of its name */
    bool has_uid;        /* new files belong to uid and gid; not with keeps_owner */
    unsigned uid, gid;
};

/* Everything is created below the directory fd, which it takes ownership of. */
struct tree_sink *tree_sink_new(int fd, const struct tree_sink_options *options);

/* Completes the previous file, if any, and starts this entry. Returns 0, -ENOTSUP for a type that
 * cannot be copied (a pipe, a device), -EEXIST if something has its name that is not replaced,
 * -EBADMSG for an invalid path, or another -errno. After a failure other than -ENOTSUP and -EEXIST
 * only tree_sink_free may be called. */
int tree_sink_entry(struct tree_sink *sink, const struct file_entry *entry);

/* Appends bytes to the file of the last entry. */
int tree_sink_data(struct tree_sink *sink, const void *data, size_t len);

/* Completes the tree. */
int tree_sink_finish(struct tree_sink *sink);

/* Frees a sink. Accepts NULL. An incomplete file leaves nothing behind. */
void tree_sink_free(struct tree_sink *sink);
