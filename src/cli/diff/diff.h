/* What changed between two states of a sandbox, as `holt diff` shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

struct diff_change {
    char letter; /* A, M, D, R; 0: what follows belongs to the change before */
    const char *type;
    bool is_binary;
    uint64_t size, old_size;
    uint64_t added, deleted; /* lines */
    struct buf path, old_path;
    struct buf patch; /* or a further piece of it */
};

/* Reads one message: 0, or -errno when it makes no sense. The type lives as long as the message. */
int diff_change_read(const json_t *message, struct diff_change *ret, struct err *err);
void diff_change_done(struct diff_change *change);

/* Appends a path as git writes it: in quotes, with escapes, when it has control characters, quotes
 * or backslashes. Prefix (may be "") stands in front, within the quotes. */
void diff_path_add(struct buf *out, const char *prefix, const struct buf *path);

enum { DIFF_NAME_MAX = 16 * 1024 * 1024 };

/* "M path", as git status has it. */
void diff_print_name(const struct diff_change *change);

/* A part of a patch that `git apply` takes; says on stderr what such a patch cannot express. */
void diff_print_patch(const struct diff_change *change);

/* Lines as of git diff --stat, gathered until all are known. */
struct diff_stat {
    struct diff_stat_row *rows;
    size_t count;
};

void diff_stat_add(struct diff_stat *stat, const struct diff_change *change);
void diff_stat_print(const struct diff_stat *stat);
void diff_stat_done(struct diff_stat *stat);
