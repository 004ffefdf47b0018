// SPDX-License-Identifier: Apache-2.0
#include "base/text/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"

struct unit {
    const char *suffix;
    double factor;
};

enum { NAME_MAX_BYTES = 64 };

/* Parses a non-negative decimal number directly followed by one of the units. */
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

static int parse_one_duration(const char *text, uint64_t *ret_ms)
{
    static const struct unit units[] = {
        { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60e3 }, { "h", 3600e3 }, { "d", 86400e3 },
    };

    return parse_with_unit(text, units, ARRAY_SIZE(units), ret_ms);
}

/* Returns the length of one number with its unit. */
static size_t duration_length(const char *text)
{
    size_t number = strspn(text, "0123456789.");

    return number + strcspn(text + number, "0123456789.");
}

/* Each part must be smaller than the previous one: "1h30m" is valid, "30m1h" is not. */
int parse_duration_ms(const char *text, uint64_t *ret_ms)
{
    uint64_t total = 0, last = UINT64_MAX;

    if (duration_length(text) == strlen(text) || strpbrk(text, "eE"))
        return parse_one_duration(text, ret_ms);
    while (*text) {
        size_t len = duration_length(text);
        char part[32];
        uint64_t ms;
        int r;

        if (len >= sizeof(part))
            return -EINVAL;
        memcpy(part, text, len);
        part[len] = '\0';
        if (isdigit((unsigned char)part[len - 1])) /* without a unit */
            return -EINVAL;
        r = parse_one_duration(part, &ms);
        if (r < 0)
            return r;
        if (ms >= last || total + ms > (uint64_t)INT64_MAX)
            return -EINVAL;
        total += ms;
        last = ms;
        text += len;
    }
    *ret_ms = total;
    return 0;
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

int parse_time_ms(const char *text, uint64_t *ret_ms)
{
    struct tm utc = { 0 };
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    uint64_t fraction = 0, unit = 100;
    time_t seconds;

    if (!end)
        return -EINVAL;
    if (*end == '.')
        for (end++; isdigit((unsigned char)*end); end++, unit /= 10)
            fraction += (uint64_t)(*end - '0') * unit;
    if (strcmp(end, "Z") != 0)
        return -EINVAL;
    seconds = timegm(&utc);
    if (seconds < 0)
        return -ERANGE;
    *ret_ms = (uint64_t)seconds * 1000 + fraction;
    return 0;
}

void format_time_ms(uint64_t ms, char ret[TIME_TEXT_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    size_t len = 0;
    struct tm utc;

    if (gmtime_r(&seconds, &utc))
        len = strftime(ret, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(ret + len, TIME_TEXT_SIZE - len, ".%03uZ", (unsigned)(ms % 1000));
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

bool is_handle(const char *text, size_t max)
{
    size_t len = strlen(text);

    if (len == 0 || len > max || !isalnum((unsigned char)*text))
        return false;
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}
