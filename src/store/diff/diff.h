/* Compares two states of a volume. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct volume_view;

enum diff_kind { DIFF_ADDED = 'A', DIFF_MODIFIED = 'M', DIFF_DELETED = 'D', DIFF_RENAMED = 'R' };

/* A path that differs. A directory is an entry only if it was added or deleted while empty, or if
 * its mode or owner changed. So a file that was replaced by a directory is deleted and the
 * directory's contents are added; if that directory is empty, the file is modified. Paths are
 * absolute and may be longer than PATH_MAX. */
struct diff_entry {
    enum diff_kind kind;
    const char *path;
    const char *old_path; /* renamed entries only: the earlier path; else NULL */
    char type;            /* f, d, l, p, s, c, b: type of the newer, or of the deleted file */
    uint64_t size;        /* bytes of a file or link in the newer state; 0 if deleted */
    uint64_t old_size;
    bool is_binary; /* with wants_lines or wants_patch: the old or new contents are not text (NUL
                       byte, or more than 1 MiB) or could not be compared in time, so there are
                       neither lines nor a patch */
    uint64_t added_lines; /* with wants_lines */
    uint64_t deleted_lines;
    const char *patch; /* with wants_patch, for text files whose contents differ: a unified diff as
                          of diff -u, names quoted like git, /dev/null for a missing file; NULL if
                          there is none, as for renames and empty files */
    size_t patch_len;
};

struct diff_options {
    bool wants_lines;
    bool wants_patch;
    uint64_t
        taken_ms;     /* wall-clock time when the earlier view was taken; 0: it is not a snapshot */
    const char *path; /* only this path and the paths below it are reported; NULL: all */
    bool is_of_volumes; /* the views are of two volumes, where equal inodes and times mean nothing:
                           contents are always read */
};

/* Called in the order of paths. A return value other than 0 stops diff_run, which returns it. */
typedef int (*diff_fn)(const struct diff_entry *entry, void *context);

/* Compares two views of one volume, or of two of one template, which may change meanwhile: files
 * that vanish are omitted or reported as different, and no symbolic link is followed. Files are
 * equal if type, mode, owner, link target or device, and contents are; times and extended
 * attributes do not count. Contents are not read if inode number, size, mtime and ctime are equal,
 * as in snapshots, unless the file was written so shortly before the snapshot that a later write
 * may have the same time. A non-empty file or link that moved unchanged is a rename, unless there
 * are more than 10,000 candidates.
 *
 * Nothing is reported before the whole comparison is done. ERR_EXHAUSTED if that needs more than
 * 256 MiB of memory, 64 MiB of names in one directory, or a path of 256 KiB; ERR_INVALID for views
 * of different trees; ERR_UNSUPPORTED for overlays with redirect_dir or metacopy. */
int diff_run(const struct volume_view *old, const struct volume_view *new,
             const struct diff_options *options, diff_fn each, void *context, struct err *err);
