// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "host/observe/history.h"

static void idle_time_is_not_busy(void)
{
    struct cpu_time time = cpu_time_parse("cpu  10 20 30 400 50 6 7 8 900 900\ncpu0 1 2\n");

    CHECK(time.busy == 81 && time.total == 531);
    time = cpu_time_parse("cpu 1 2 3 4\n");
    CHECK(time.busy == 6 && time.total == 10);
    CHECK(cpu_time_parse("").total == 0 && cpu_time_parse("intr 5").total == 0);
}

static void the_share_is_between_0_and_1(void)
{
    const struct cpu_time before = { 100, 1000 };

    CHECK(cpu_time_share(&before, &(struct cpu_time){ 150, 1100 }) == 0.5);
    CHECK(cpu_time_share(&before, &(struct cpu_time){ 300, 1100 }) == 1);
    CHECK(cpu_time_share(&before, &before) == 0);
    CHECK(cpu_time_share(&before, &(struct cpu_time){ 90, 1100 }) == 0);
    CHECK(cpu_time_share(&before, &(struct cpu_time){ 0, 0 }) == 0);
}

int main(void)
{
    RUN(idle_time_is_not_busy);
    RUN(the_share_is_between_0_and_1);
}
