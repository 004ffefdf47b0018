// SPDX-License-Identifier: Apache-2.0
#include "cli/core/signal_name.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/parse.h"

enum { SIGNAL_MAX = 64 };

int signal_parse(const char *text, int *ret)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    uint64_t value;

    if (parse_u64(text, &value) == 0) {
        if (value < 1 || value > SIGNAL_MAX)
            return -EINVAL;
        *ret = (int)value;
        return 0;
    }
    for (int number = 1; number <= SIGNAL_MAX; number++) {
        const char *known = sigabbrev_np(number);

        if (!known || strcasecmp(known, name) != 0)
            continue;
        *ret = number;
        return 0;
    }
    return -EINVAL;
}

void signal_format(int number, char ret[SIGNAL_TEXT_SIZE])
{
    const char *known = sigabbrev_np(number);

    if (known)
        (void)snprintf(ret, SIGNAL_TEXT_SIZE, "SIG%s", known);
    else
        (void)snprintf(ret, SIGNAL_TEXT_SIZE, "signal %d", number);
}
