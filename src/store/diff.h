/* What changed between two states of a volume. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct volume_view;

enum diff_kind { DIFF_ADDED = 'A', DIFF_MODIFIED = 'M', DIFF_DELETED = 'D', DIFF_RENAMED = 'R' };

/* A file, link or whatever it is that differs. Directories are named only when they are all there
 * is to name: added or deleted and empty, or of another mode or owner. Paths are absolute. */
struct diff_entry {
    enum diff_kind kind;
    const char *path;
    const char *old_path; /* of renamed: where it was; else NULL */
    char type;            /* f, d, l, p, s, c, b: of the newer, or of what was deleted */
    uint64_t size;        /* bytes, of the newer (0 when deleted) */
    uint64_t old_size;
    bool is_binary;       /* of contents: not text, so neither lines nor patch */
    uint64_t added_lines; /* with wants_lines */
    uint64_t deleted_lines;
    const char *patch; /* with wants_patch, of text files whose contents differ: a unified diff */
    size_t patch_len;
};

struct diff_options {
    bool wants_lines;
    bool wants_patch;
};

/* Called in order of paths. Not 0: stop, and diff_run returns that. */
typedef int (*diff_fn)(const struct diff_entry *entry, void *context);

/* Compares two views of one volume. Files are equal when type, mode, owner, link target and
 * contents are; times do not count. A file that went from one path to another unchanged is a
 * rename. */
int diff_run(const struct volume_view *old, const struct volume_view *new,
             const struct diff_options *options, diff_fn each, void *context, struct err *err);
