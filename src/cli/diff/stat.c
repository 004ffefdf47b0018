// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/table.h"
#include "cli/diff/diff.h"
#include "holt.h"

enum { GRAPH_WIDTH = 40, ROWS_STEP = 256 };

struct diff_stat_row {
    struct buf name; /* as printed */
    bool is_binary;
    uint64_t size, old_size, added, deleted;
};

void diff_stat_add(struct diff_stat *stat, const struct holt_change *change)
{
    struct diff_stat_row *row;

    if (stat->count % ROWS_STEP == 0) {
        struct diff_stat_row *rows = xcalloc(stat->count + ROWS_STEP, sizeof(*rows));

        if (stat->count > 0)
            memcpy(rows, stat->rows, stat->count * sizeof(*rows));
        free(stat->rows);
        stat->rows = rows;
    }
    row = &stat->rows[stat->count++];
    *row = (struct diff_stat_row){
        .name = BUF_INIT(DIFF_NAME_MAX),
        .is_binary = change->is_binary,
        .size = change->size_bytes,
        .old_size = change->old_size_bytes,
        .added = change->added_lines,
        .deleted = change->deleted_lines,
    };
    if (diff_letter(change) == 'R') {
        diff_path_add(&row->name, "", change->old_path);
        (void)buf_add_str(&row->name, " => ");
    }
    diff_path_add(&row->name, "", change->path);
}

static void print_marks(char mark, uint64_t lines, uint64_t most)
{
    uint64_t count = most <= GRAPH_WIDTH ? lines : (lines * GRAPH_WIDTH + most - 1) / most;

    for (uint64_t i = 0; i < count; i++)
        (void)putchar(mark);
}

static void print_row(const struct diff_stat_row *row, int width, uint64_t most)
{
    (void)printf(" %s%*s | ", row->name.data, width - text_width(row->name.data), "");
    if (row->is_binary) {
        (void)printf("Bin %" PRIu64 " -> %" PRIu64 " bytes\n", row->old_size, row->size);
        return;
    }
    (void)printf("%" PRIu64 "%s", row->added + row->deleted, row->added + row->deleted ? " " : "");
    print_marks('+', row->added, most);
    print_marks('-', row->deleted, most);
    (void)printf("\n");
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void diff_stat_print(const struct diff_stat *stat)
{
    uint64_t most = 0, added = 0, deleted = 0;
    int width = 0;

    for (size_t i = 0; i < stat->count; i++) {
        const struct diff_stat_row *row = &stat->rows[i];

        width = text_width(row->name.data) > width ? text_width(row->name.data) : width;
        most = row->added + row->deleted > most ? row->added + row->deleted : most;
        added += row->added;
        deleted += row->deleted;
    }
    for (size_t i = 0; i < stat->count; i++)
        print_row(&stat->rows[i], width, most);
    (void)printf(" %zu file%s changed, %" PRIu64 " insertion%s(+), %" PRIu64 " deletion%s(-)\n",
                 stat->count, plural(stat->count), added, plural(added), deleted, plural(deleted));
}

void diff_stat_done(struct diff_stat *stat)
{
    for (size_t i = 0; i < stat->count; i++)
        buf_done(&stat->rows[i].name);
    free(stat->rows);
}
