// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "host/process/output_times.h"

static void marks_are_ten_milliseconds_apart(void)
{
    struct output_times times = { .marks = NULL };

    output_times_add(&times, 0, 1000);
    output_times_add(&times, 5, 1009);
    output_times_add(&times, 7, 1010);
    output_times_add(&times, 9, 900); /* the clock was set back */
    CHECK(times.count == 3);
    CHECK(times.marks[1].offset == 7 && times.marks[1].time_ms == 1010);
    CHECK(times.marks[2].offset == 9 && times.marks[2].time_ms == 900);
    output_times_done(&times);
}

/* Whatever their number, each mark is that of its output, and the first and the latest are there.
 */
static void marks_of_long_output_are_further_apart(void)
{
    enum { PIECES = 100000, MS = 20 };
    struct output_times times = { .marks = NULL };

    for (uint64_t i = 0; i < PIECES; i++)
        output_times_add(&times, i * 3, 1000 + i * MS);
    CHECK(times.count > OUTPUT_MARKS_MAX / 2 - 1 && times.count <= OUTPUT_MARKS_MAX);
    CHECK(times.marks[0].offset == 0);
    for (size_t i = 0; i < times.count; i++) {
        CHECK(times.marks[i].time_ms == 1000 + times.marks[i].offset / 3 * MS);
        CHECK(i == 0 || times.marks[i].offset > times.marks[i - 1].offset);
    }
    CHECK(times.marks[times.count - 1].time_ms + times.step_ms >= 1000 + (PIECES - 1) * MS);
    output_times_done(&times);
}

static void marks_are_read_as_they_were_written(void)
{
    struct output_times times = { .marks = NULL }, again = { .marks = NULL };
    cleanup_json json_t *value = NULL, *bad = json_pack("[i, i, i, s, i]", 1, 2, 3, "x", 4);

    CHECK(!output_times_write(&times));
    for (uint64_t i = 0; i < OUTPUT_MARKS_MAX; i++)
        output_times_add(&times, i << 33, 1000 + i * 100);
    value = output_times_write(&times);
    output_times_read(&again, value);
    CHECK(again.count == times.count);
    for (size_t i = 0; i < times.count; i++)
        CHECK(again.marks[i].offset == times.marks[i].offset &&
              again.marks[i].time_ms == times.marks[i].time_ms);
    output_times_done(&again);
    output_times_read(&again, NULL);
    CHECK(again.count == 0);
    output_times_read(&again, bad);
    CHECK(again.count == 1 && again.marks[0].offset == 1);
    output_times_done(&again);
    output_times_done(&times);
}

int main(void)
{
    RUN(marks_are_ten_milliseconds_apart);
    RUN(marks_of_long_output_are_further_apart);
    RUN(marks_are_read_as_they_were_written);
    return 0;
}
