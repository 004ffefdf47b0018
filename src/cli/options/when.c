// SPDX-License-Identifier: Apache-2.0
#include "cli/options/when.h"

#include <errno.h>

#include "base/clock.h"
#include "base/text/parse.h"

int when_parse(const char *text, uint64_t *ret_ms)
{
    uint64_t now_ms = clock_wall_ms(), ago_ms;

    if (parse_time_ms(text, ret_ms) == 0)
        return 0;
    if (parse_duration_ms(text, &ago_ms) < 0)
        return -EINVAL;
    *ret_ms = ago_ms < now_ms ? now_ms - ago_ms : 1;
    return 0;
}
