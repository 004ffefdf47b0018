// SPDX-License-Identifier: Apache-2.0
#include "cli/core/table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/control.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/core/terminal.h"

enum { COLUMNS_MAX = 16, CELL_BYTES_MAX = 8192, CUT_LEAST = 8, CUT_SIGN = 3, GAP = 2 };

struct layout {
    int widths[COLUMNS_MAX];
    int room; /* columns of the terminal */
    bool has_colours;
};

void table_add(struct table *table, const char *format, ...)
{
    char text[CELL_BYTES_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    text_drop_controls(text);
    if (table->count % 64 == 0) {
        char **cells = xcalloc(table->count + 64, sizeof(*cells));

        if (table->count > 0)
            memcpy(cells, table->cells, table->count * sizeof(*cells));
        free(table->cells);
        table->cells = cells;
    }
    table->cells[table->count++] = xstrdup(text);
}

int text_width(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Returns the colour of a state of a sandbox or process; NULL: none. */
static const char *state_colour(const char *state)
{
    static const struct {
        const char *start, *colour;
    } colours[] = {
        { "active", COLOUR_GREEN },    { "running", COLOUR_GREEN },
        { "idle", COLOUR_GREEN },      { "busy", COLOUR_YELLOW },
        { "paus", COLOUR_YELLOW },     { "creating", COLOUR_YELLOW },
        { "rolling", COLOUR_YELLOW },  { "destroying", COLOUR_YELLOW },
        { "failed", COLOUR_RED },      { "stopped", COLOUR_GREY },
        { "exited 0", COLOUR_GREY },   { "asleep", COLOUR_GREY },
        { "killed", COLOUR_GREY },     { "exited", COLOUR_RED },
        { "oom", COLOUR_RED },         { "timed out", COLOUR_RED },
        { "SIG", COLOUR_RED },         { "lost", COLOUR_RED },
        { "not started", COLOUR_RED },
    };

    for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
        if (strncmp(state, colours[i].start, strlen(colours[i].start)) == 0)
            return colours[i].colour;
    return NULL;
}

/* Returns the number of bytes of the first characters of a text. */
static int bytes_of(const char *text, int characters)
{
    int bytes = 0;

    for (; text[bytes] && characters > 0; characters--)
        do
            bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80);
    return bytes;
}

/* Cells of the column STATE are coloured. A cell that is too wide ends with "...". */
static void print_cell(const struct layout *layout, const char *title, const char *cell, int width)
{
    bool is_state = layout->has_colours && strcmp(title, "STATE") == 0;
    const char *colour = is_state ? state_colour(cell) : NULL;
    bool is_cut = text_width(cell) > width;

    (void)printf("%s%.*s%s%s", colour ? colour : "",
                 is_cut ? bytes_of(cell, width - CUT_SIGN) : (int)strlen(cell), cell,
                 is_cut ? "..." : "", colour ? COLOUR_NONE : "");
}

/* The last column is not padded, and an empty last cell has no separator. */
static void print_row(const struct table *table, const char *const *cells,
                      const struct layout *layout)
{
    int left = layout->room;

    for (size_t i = 0; i < table->columns; i++) {
        int gap = i > 0 ? GAP : 0, width = layout->widths[i], padding;
        bool is_right = table->right >> i & 1, is_last = i + 1 == table->columns;

        if (is_last && *cells[i] == '\0')
            break;
        if (table->is_clipped && width > left - gap)
            width = left - gap;
        if (width < CUT_SIGN && width < layout->widths[i])
            break;
        left -= gap + width;
        padding = width - text_width(cells[i]);
        padding = padding > 0 ? padding : 0; /* a cell that is cut has none */
        (void)printf("%*s", gap + (is_right ? padding : 0), "");
        print_cell(layout, table->titles[i], cells[i], width);
        (void)printf("%*s", is_right || is_last ? 0 : padding, "");
    }
    (void)printf("\n");
}

/* Makes the widest of these columns narrower until the table fits or none can be cut. Returns by
 * how much the table is too wide. */
static int columns_cut(const struct table *table, struct layout *layout, unsigned which, int excess)
{
    for (; excess > 0; excess--) {
        int *widest = NULL;

        for (size_t i = 0; i < table->columns; i++)
            if ((which >> i & 1) && layout->widths[i] > CUT_LEAST &&
                (!widest || layout->widths[i] > *widest))
                widest = &layout->widths[i];
        if (!widest)
            return excess;
        --*widest;
    }
    return 0;
}

static void layout_fit(const struct table *table, struct layout *layout)
{
    int excess = GAP * ((int)table->columns - 1) - layout->room;

    for (size_t i = 0; i < table->columns; i++)
        excess += layout->widths[i];
    excess = columns_cut(table, layout, table->flexible, excess);
    (void)columns_cut(table, layout, table->spare, excess);
}

void table_print(const struct table *table)
{
    struct layout layout = { .has_colours = terminal_has_colours(STDOUT_FILENO) };

    uint32_t rows, room;

    assert(table->columns > 0 && table->columns <= COLUMNS_MAX);
    terminal_size(&rows, &room);
    layout.room = (int)room;
    for (size_t i = 0; i < table->columns; i++)
        layout.widths[i] = text_width(table->titles[i]);
    for (size_t i = 0; i < table->count; i++)
        if (text_width(table->cells[i]) > layout.widths[i % table->columns])
            layout.widths[i % table->columns] = text_width(table->cells[i]);
    if (isatty(STDOUT_FILENO))
        layout_fit(table, &layout);
    print_row(table, table->titles, &layout);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
        print_row(table, (const char *const *)table->cells + i, &layout);
}

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
}

void format_size(char cell[CELL_SIZE], uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(cell, CELL_SIZE, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void format_size_short(char cell[CELL_SIZE], uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < strlen(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(cell, CELL_SIZE, unit == 0 || value >= 99.95 ? "%.0f%c" : "%.1f%c", value,
                   units[unit]);
}

void format_age(char cell[CELL_SIZE], int64_t ms)
{
    static const struct {
        uint64_t seconds;
        const char *letter;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    uint64_t now = clock_wall_ms() / 1000, then = (uint64_t)ms / 1000, age;
    size_t i = 0;

    if (ms <= 0) {
        (void)snprintf(cell, CELL_SIZE, "-");
        return;
    }
    age = now > then ? now - then : 0;
    while (i + 1 < ARRAY_SIZE(units) && age < units[i].seconds)
        i++;
    (void)snprintf(cell, CELL_SIZE, "%" PRIu64 "%s ago", age / units[i].seconds, units[i].letter);
}
