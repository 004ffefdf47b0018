// SPDX-License-Identifier: Apache-2.0
#include "host/process/output_times.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"

enum { FIRST_MARKS = 4 };

/* Makes room by keeping every second mark, and the intervals twice as long from now on. */
static void marks_thin(struct output_times *times)
{
    assert(times->marks);
    for (size_t i = 1; 2 * i < times->count; i++)
        times->marks[i] = times->marks[2 * i];
    times->count = (times->count + 1) / 2;
    times->step_ms *= 2;
}

static void marks_append(struct output_times *times, uint64_t offset, uint64_t time_ms)
{
    if (!times->marks || times->count == times->room) {
        times->room = times->room ? 2 * times->room : FIRST_MARKS;
        times->marks = xreallocarray(times->marks, times->room, sizeof(*times->marks));
    }
    times->marks[times->count++] = (struct output_mark){ offset, time_ms };
}

/* A clock that was set back begins a new interval. */
void output_times_add(struct output_times *times, uint64_t offset, uint64_t now_ms)
{
    const struct output_mark *last = times->count ? &times->marks[times->count - 1] : NULL;

    if (times->step_ms == 0)
        times->step_ms = OUTPUT_STEP_MS;
    if (last && now_ms >= last->time_ms && now_ms - last->time_ms < times->step_ms)
        return;
    if (times->count == OUTPUT_MARKS_MAX)
        marks_thin(times);
    marks_append(times, offset, now_ms);
}

json_t *output_times_write(const struct output_times *times)
{
    json_t *array = times->count ? json_array() : NULL;

    for (size_t i = 0; i < times->count; i++) {
        (void)json_array_append_new(array, json_integer((json_int_t)times->marks[i].offset));
        (void)json_array_append_new(array, json_integer((json_int_t)times->marks[i].time_ms));
    }
    return array;
}

void output_times_read(struct output_times *times, const json_t *value)
{
    for (size_t i = 0; i + 1 < json_array_size(value) && times->count < OUTPUT_MARKS_MAX; i += 2) {
        json_int_t offset = json_integer_value(json_array_get(value, i));
        json_int_t time_ms = json_integer_value(json_array_get(value, i + 1));

        if (offset < 0 || time_ms <= 0)
            return;
        marks_append(times, (uint64_t)offset, (uint64_t)time_ms);
    }
}

void output_times_done(struct output_times *times)
{
    free(times->marks);
    *times = (struct output_times){ .marks = NULL };
}
