// SPDX-License-Identifier: Apache-2.0
#include "cli/run/line_times.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "holt.h"

/* As the contract says of marks (Extent in proto/holt/v1/process.proto). */
enum { MARKS_MAX = 256, STEP_MS = 10 };

enum { STEP_MAX_MS = 24 * 3600 * 1000 };

static uint64_t total_of(const struct holt_process_info *info, int stream)
{
    return stream == 0 ? info->stdout_total : info->stderr_total;
}

/* Returns the shortest time between two marks, which is at least the time that the last one stands
 * for. */
static int64_t shortest_step(const struct holt_output_mark *marks, size_t count)
{
    int64_t shortest = STEP_MAX_MS;

    for (size_t i = 1; i < count; i++) {
        int64_t step = marks[i].time_ms - marks[i - 1].time_ms;

        if (step > 0 && step < shortest) /* a clock that was set back gives none */
            shortest = step;
    }
    return shortest;
}

/* Returns a time at which all output between a mark and the next one had come. A mark that the
 * daemon has set stands for a short time. When there are too many, it drops every second one, and
 * the output of a dropped mark seems to belong to the one before; never of the last mark. */
static int64_t end_of_mark(const struct holt_output_mark *marks, size_t count, size_t i)
{
    if (count < MARKS_MAX / 2)
        return marks[i].time_ms + STEP_MS;
    return i + 1 < count ? marks[i + 1].time_ms : marks[i].time_ms + shortest_step(marks, count);
}

uint64_t line_times_since(const struct holt_process_info *info, int stream, int64_t time_ms)
{
    const struct holt_output_mark *marks = info->marks[stream];
    size_t count = info->mark_counts[stream];

    for (size_t i = 0; i < count; i++)
        if (end_of_mark(marks, count, i) > time_ms)
            return marks[i].offset;
    return total_of(info, stream);
}

/* Returns the time of the last mark at or before the offset; that of the start of the process where
 * there is none. */
static int64_t time_at(const struct holt_process_info *info, int stream, uint64_t offset)
{
    int64_t time_ms = info->started_ms;

    if (offset >= total_of(info, stream))
        return (int64_t)clock_wall_ms();
    for (size_t i = 0; i < info->mark_counts[stream]; i++) {
        if (info->marks[stream][i].offset > offset)
            break;
        time_ms = info->marks[stream][i].time_ms;
    }
    return time_ms;
}

void line_times_add(struct line_times *times, int stream, const struct holt_process_event *event,
                    struct buf *out)
{
    char text[TIME_TEXT_SIZE];
    size_t at = 0;

    while (at < event->len) {
        const char *end = memchr(event->data + at, '\n', event->len - at);
        size_t len = end ? (size_t)(end - event->data) + 1 - at : event->len - at;

        if (!times->is_inside[stream]) {
            format_time_ms((uint64_t)time_at(times->info, stream, event->offset + at), text);
            (void)buf_printf(out, "%s ", text);
        }
        (void)buf_add(out, event->data + at, len);
        times->is_inside[stream] = !end;
        at += len;
    }
}
