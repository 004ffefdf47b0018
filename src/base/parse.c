// SPDX-License-Identifier: Apache-2.0
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

struct unit {
    const char *suffix;
    double factor;
};

enum { NAME_MAX_BYTES = 64 };

/* A non-negative decimal number and, right behind it, one of the units. */
static int parse_with_unit(const char *text, const struct unit *units, size_t count,
                           uint64_t *ret_value)
{
    const double ceiling = 9e18; /* below INT64_MAX, so that callers may use signed types */
    char *end;
    double number;

    if (!isdigit((unsigned char)*text) || strpbrk(text, "xXpP"))
        return -EINVAL;
    errno = 0;
    number = strtod(text, &end);
    if (errno || !isfinite(number))
        return -ERANGE;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(end, units[i].suffix) != 0)
            continue;
        if (number * units[i].factor > ceiling)
            return -ERANGE;
        *ret_value = (uint64_t)llround(number * units[i].factor);
        return 0;
    }
    return -EINVAL;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct unit units[] = {
        { "", 1 },         { "b", 1 },        { "k", 0x1p10 },   { "kb", 0x1p10 },
        { "kib", 0x1p10 }, { "m", 0x1p20 },   { "mb", 0x1p20 },  { "mib", 0x1p20 },
        { "g", 0x1p30 },   { "gb", 0x1p30 },  { "gib", 0x1p30 }, { "t", 0x1p40 },
        { "tb", 0x1p40 },  { "tib", 0x1p40 },
    };

    return parse_with_unit(text, units, ARRAY_SIZE(units), ret_bytes);
}

int parse_duration_ms(const char *text, uint64_t *ret_ms)
{
    static const struct unit units[] = {
        { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60e3 }, { "h", 3600e3 }, { "d", 86400e3 },
    };

    return parse_with_unit(text, units, ARRAY_SIZE(units), ret_ms);
}

int parse_u64(const char *text, uint64_t *ret_value)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno)
        return -errno;
    if (*end != '\0')
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int parse_cpus(const char *text, uint32_t *ret_millis)
{
    static const struct unit units[] = { { "", 1000 } };
    uint64_t millis;
    int r = parse_with_unit(text, units, ARRAY_SIZE(units), &millis);

    if (r < 0)
        return r;
    if (millis > UINT32_MAX)
        return -ERANGE;
    *ret_millis = (uint32_t)millis;
    return 0;
}

int parse_bool(const char *text, bool *ret_value)
{
    static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *ret_value = i % 2 == 1;
            return 0;
        }
    }
    return -EINVAL;
}

bool is_name(const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > NAME_MAX_BYTES)
        return false;
    if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text))
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}
