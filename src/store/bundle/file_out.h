/* Writes files to a tar archive: contents with their holes, hard links, extended attributes. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct tar_node;
struct tar_out;

/* Zero-initialised. */
struct file_out {
    void *links; /* files with several names that were written, by inode */
    char *block; /* for contents */
};

void file_out_done(struct file_out *files);

/* Writes a regular file; node has its path, owner, mode and time. Another name of a file that was
 * written is a hard link. Returns 0 or -errno; -ESTALE if the file changed meanwhile. */
int file_out_write(struct file_out *files, struct tar_out *out, struct tar_node *node, int fd,
                   const struct stat *st);

/* Adds the extended attributes that an import keeps to the next entry. Returns 0 or -errno. */
int file_out_xattrs(struct tar_out *out, int fd);

/* Returns whether a file has the same of these attributes in two directories. */
bool file_out_same_xattrs(int old_dir_fd, int new_dir_fd, const char *name);
