// SPDX-License-Identifier: Apache-2.0
#include "cli/core/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/control.h"
#include "cli/core/report.h"
#include "cli/core/table.h"
#include "cli/core/terminal.h"

enum {
    DRAW_EVERY_MS = 100,
    LINE_BYTES = 1024,
    COLUMNS_LEAST = 20,
    BAR_LEAST = 10, /* a shorter bar is not drawn */
    BAR_MOST = 40,
    TOTAL_LEAST = 70, /* a narrower line has no total */
};

static int columns(void)
{
    struct winsize size = { .ws_col = 0 };

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < COLUMNS_LEAST)
        return size.ws_col > 0 ? COLUMNS_LEAST : 80;
    return size.ws_col;
}

void progress_begin(struct progress *progress, const char *label, uint64_t total)
{
    uint64_t now = clock_ms();

    *progress = (struct progress){
        .label = label,
        .total = total,
        .began_ms = now,
        .drawn_ms = now,
        .is_shown = isatty(STDERR_FILENO) == 1 && !terminal_is_dumb(),
    };
}

/* "1:05", "2:03:04". */
static void time_format(char cell[CELL_SIZE], uint64_t seconds)
{
    if (seconds >= 3600)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, seconds / 3600,
                       seconds / 60 % 60, seconds % 60);
    else
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64 ":%02" PRIu64, seconds / 60, seconds % 60);
}

/* Formats the text after the bar: "45% 120.0 MiB of 266.7 MiB 38.2 MiB/s 0:05 left". */
static void figures_format(const struct progress *progress, uint64_t elapsed_ms, int room,
                           char *ret, size_t size)
{
    uint64_t rate = progress->done * 1000 / (elapsed_ms > 0 ? elapsed_ms : 1);
    char done[CELL_SIZE], total[CELL_SIZE], speed[CELL_SIZE], left[CELL_SIZE];
    char of[CELL_SIZE + sizeof(" of ")] = "";

    format_size(done, progress->done);
    format_size(speed, rate);
    if (progress->total == 0) {
        time_format(left, elapsed_ms / 1000);
        (void)snprintf(ret, size, "%s  %s/s  %s", done, speed, left);
        return;
    }
    format_size(total, progress->total);
    if (room >= TOTAL_LEAST)
        (void)snprintf(of, sizeof(of), " of %s", total);
    (void)snprintf(left, sizeof(left), "-:--");
    if (rate > 0)
        time_format(left, (progress->total - progress->done + rate - 1) / rate);
    (void)snprintf(ret, size, "%3.0f%%  %s%s  %s/s  %s left",
                   100.0 * (double)progress->done / (double)progress->total, done, of, speed, left);
}

/* Formats the bar, "[====>     ] "; empty if there is no room or no total. */
static void bar_format(const struct progress *progress, int room, char *ret)
{
    int width = room < BAR_MOST ? room : BAR_MOST, filled;

    *ret = '\0';
    if (progress->total == 0 || width < BAR_LEAST)
        return;
    width -= 3;
    filled = (int)((double)width * (double)progress->done / (double)progress->total);
    *ret++ = '[';
    memset(ret, ' ', (size_t)width);
    memset(ret, '=', (size_t)filled);
    if (filled < width)
        ret[filled] = '>';
    ret += width;
    memcpy(ret, "] ", sizeof("] "));
}

/* The last column stays empty: some terminals wrap there. */
static void draw(struct progress *progress, uint64_t now)
{
    char figures[5 * CELL_SIZE], bar[BAR_MOST + 1], label[LINE_BYTES / 4], line[LINE_BYTES];
    int room = columns() - 1;
    int len;

    if (progress->done > progress->total && progress->total > 0)
        progress->done = progress->total;
    figures_format(progress, now - progress->began_ms, room, figures, sizeof(figures));
    (void)snprintf(label, sizeof(label), "%s", progress->label);
    text_drop_controls(label);
    room -= (int)strlen(figures);
    bar_format(progress, room - text_width(label) - 2, bar);
    room -= (int)strlen(bar) + 2;
    len = text_width(label) > room ? (room > 0 ? room : 0) : (int)strlen(label);
    (void)snprintf(line, sizeof(line), "\r\033[K%.*s%s%s%s", len, label, len > 0 ? "  " : "", bar,
                   figures);
    (void)!write(STDERR_FILENO, line, strlen(line));
    progress->drawn_ms = now;
    progress->is_drawn = true;
}

void progress_add(struct progress *progress, uint64_t bytes)
{
    uint64_t now;

    progress->done += bytes;
    if (!progress->is_shown)
        return;
    now = clock_ms();
    if (now - progress->drawn_ms >= DRAW_EVERY_MS)
        draw(progress, now);
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        (void)!write(STDERR_FILENO, "\r\033[K", strlen("\r\033[K"));
    progress->is_drawn = false;
}
