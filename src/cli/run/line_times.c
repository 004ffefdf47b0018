// SPDX-License-Identifier: Apache-2.0
#include "cli/run/line_times.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "holt.h"

static uint64_t total_of(const struct holt_process_info *info, int stream)
{
    return stream == 0 ? info->stdout_total : info->stderr_total;
}

uint64_t line_times_since(const struct holt_process_info *info, int stream, int64_t time_ms)
{
    for (size_t i = 0; i < info->mark_counts[stream]; i++)
        if (info->marks[stream][i].time_ms >= time_ms)
            return info->marks[stream][i].offset;
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
