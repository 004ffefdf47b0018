/* What changed between two states of a volume. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct volume_view;

enum diff_kind { DIFF_ADDED = 'A', DIFF_MODIFIED = 'M', DIFF_DELETED = 'D', DIFF_RENAMED = 'R' };

/* A file, link or whatever it is that differs. Directories are named only when they are all there
 * is to name: added or deleted and empty, or of another mode or owner. So a file in whose place
 * there is a directory now was deleted, and what is in the directory was added; of an empty one the
 * file was modified. Paths are absolute and may be longer than PATH_MAX. */
struct diff_entry {
    enum diff_kind kind;
    const char *path;
    const char *old_path; /* of renamed: where it was; else NULL */
    char type;            /* f, d, l, p, s, c, b: of the newer, or of what was deleted */
    uint64_t size;        /* bytes, of the newer (0 when deleted), of files and links */
    uint64_t old_size;
    bool is_binary; /* with either wish: the old or new contents are not text (a NUL byte, more than
                     * 1 MiB) or could not be compared in time, so neither lines nor patch */
    uint64_t added_lines; /* with wants_lines */
    uint64_t deleted_lines;
    const char *patch; /* with wants_patch, of text files whose contents differ: a unified diff as
                        * of diff -u, names quoted as git does, with /dev/null for what is not
                        * there; NULL where there is none, as of renames and empty files */
    size_t patch_len;
};

struct diff_options {
    bool wants_lines;
    bool wants_patch;
    uint64_t
        taken_ms; /* when the earlier view was taken, by the wall clock; 0: it is no snapshot */
};

/* Called in order of paths. Not 0: stop, and diff_run returns that. */
typedef int (*diff_fn)(const struct diff_entry *entry, void *context);

/* Compares two views of one volume, which may be written to meanwhile: what vanishes on the way is
 * left out or differs, and no link is followed. Files are equal when type, mode, owner, link target
 * or device and contents are; times and extended attributes do not count. Contents are not read
 * where inode number, size, mtime and ctime are the same, as they are in snapshots, unless it was
 * written to so shortly before the snapshot that a write after it may bear the same time. A file or
 * link of some size that went from one path to another unchanged is a rename, unless there are more
 * than 10,000 that might be.
 *
 * Nothing is reported before everything has been compared. ERR_EXHAUSTED when that takes more than
 * 256 MiB of memory, 64 MiB of names in one directory, or a path of 256 KiB; ERR_INVALID for views
 * of different trees; ERR_UNSUPPORTED for overlays with redirect_dir or metacopy. */
int diff_run(const struct volume_view *old, const struct volume_view *new,
             const struct diff_options *options, diff_fn each, void *context, struct err *err);
