// SPDX-License-Identifier: Apache-2.0
/* Where output since a time starts: no line that came later is left out. */
#include "../../../src/cli/run/line_times.c" // NOLINT(bugprone-suspicious-include)
#include "base/cleanup.h"
#include "check.h"
#include "host/process/output_times.h"

/* The marks that the daemon keeps of lines, each of one byte, which come at these times. */
struct output {
    struct holt_output_mark marks[OUTPUT_MARKS_MAX];
    struct holt_process_info info;
};

static void output_make(struct output *output, const int64_t *times, size_t count)
{
    struct output_times kept = { .marks = NULL };

    for (size_t i = 0; i < count; i++)
        output_times_add(&kept, i, (uint64_t)times[i]);
    CHECK(kept.count <= OUTPUT_MARKS_MAX);
    for (size_t i = 0; i < kept.count; i++)
        output->marks[i] = (struct holt_output_mark){ .offset = kept.marks[i].offset,
                                                      .time_ms = (int64_t)kept.marks[i].time_ms };
    output->info = (struct holt_process_info){ .stdout_total = count };
    output->info.marks[0] = output->marks;
    output->info.mark_counts[0] = kept.count;
    output_times_done(&kept);
}

static void check_nothing_is_lost(const int64_t *times, size_t count)
{
    struct output output;

    output_make(&output, times, count);
    for (size_t i = 0; i < count; i++)
        CHECK(line_times_since(&output.info, 0, times[i]) <= i, "(line %zu)", i);
    CHECK(line_times_since(&output.info, 0, times[0] - 1) == 0);
}

/* Lines that come within one mark. */
static void lines_between_two_marks_are_shown(void)
{
    static const int64_t times[] = { 1000, 1004, 1009, 1010, 1019, 1500, 1509 };

    check_nothing_is_lost(times, ARRAY_SIZE(times));
}

static void lines_of_long_before_are_not_shown(void)
{
    static const int64_t times[] = { 1000, 1004, 1500, 1504 };
    struct output output;

    output_make(&output, times, ARRAY_SIZE(times));
    CHECK(line_times_since(&output.info, 0, 1100) == 2);
    CHECK(line_times_since(&output.info, 0, 1500) == 2);
    CHECK(line_times_since(&output.info, 0, 1600) == 4);
}

/* Marks that were dropped leave their lines to the mark before, however much later these came. */
static void lines_without_a_mark_are_shown(void)
{
    enum { LINES = 5000 };
    static int64_t times[LINES];
    struct output output;
    int64_t now = 1000000;

    for (size_t i = 0; i < LINES; i++) {
        now += i % 7 == 0 ? 100 : i % 1001 == 0 ? 3600000 : 3;
        times[i] = now;
    }
    for (size_t count = 1; count < LINES; count += 97)
        check_nothing_is_lost(times, count);
    check_nothing_is_lost(times, LINES);
    output_make(&output, times, LINES);
    CHECK(line_times_since(&output.info, 0, now + 3600000) == LINES);
    CHECK(line_times_since(&output.info, 0, now - 60000) > 1000);
}

int main(void)
{
    RUN(lines_between_two_marks_are_shown);
    RUN(lines_of_long_before_are_not_shown);
    RUN(lines_without_a_mark_are_shown);
    return 0;
}
