// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "check.h"

static void sizes_are_powers_of_1024(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        { "0", 0 },
        { "4096", 4096 },
        { "64b", 64 },
        { "64KiB", 65536 },
        { "1k", 1024 },
        { "512M", 512ULL << 20 },
        { "1.5G", 1536ULL << 20 },
        { "2TB", 2ULL << 40 },
    };
    uint64_t bytes;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK(parse_size(good[i].text, &bytes) == 0, "('%s')", good[i].text);
        CHECK(bytes == good[i].bytes, "('%s' gave %" PRIu64 ")", good[i].text, bytes);
    }
}

static void what_is_not_a_size_is_refused(void)
{
    static const char *const bad[] = { "",     "M",   "-1",  "+1",  " 1",  "1 M", "1X",
                                       "0x10", "nan", "inf", "1MM", "1p3", "1,5", "1M " };
    uint64_t bytes = 7;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(parse_size(bad[i], &bytes) == -EINVAL, "('%s')", bad[i]);
    CHECK(bytes == 7, "(a refusal writes nothing)");
}

static void what_would_overflow_is_out_of_range(void)
{
    uint64_t value = 7;

    CHECK(parse_size("99999999999T", &value) == -ERANGE);
    CHECK(parse_size("1e999", &value) == -ERANGE);
    CHECK(parse_duration_ms("1e30d", &value) == -ERANGE);
    CHECK(parse_u64("18446744073709551616", &value) == -ERANGE);
    CHECK(value == 7);
}

static void durations_have_units_and_seconds_are_the_default(void)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        { "30", 30000 },      { "30s", 30000 },
        { "250ms", 250 },     { "1.5m", 90000 },
        { "2h", 7200000 },    { "1d", 86400000 },
        { "1h30m", 5400000 }, { "90s", 90000 },
        { "2d", 172800000 },  { "1d2h3m4s5ms", 93784005 },
    };
    uint64_t ms;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK(parse_duration_ms(good[i].text, &ms) == 0, "('%s')", good[i].text);
        CHECK(ms == good[i].ms, "('%s' gave %" PRIu64 ")", good[i].text, ms);
    }
    CHECK(parse_duration_ms("5w", &ms) == -EINVAL);
    CHECK(parse_duration_ms("-5s", &ms) == -EINVAL);
}

static void parts_of_a_duration_have_units_and_grow_smaller(void)
{
    static const char *const bad[] = { "1h30", "30m1h", "1h1h",  "1h-30m", "1h 30m",
                                       "h30m", "1h.",   "1h30x", "1hh",    "1h0x1m" };
    uint64_t ms = 7;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(parse_duration_ms(bad[i], &ms) < 0, "('%s' gave %" PRIu64 ")", bad[i], ms);
    CHECK(ms == 7, "(a refusal writes nothing)");
}

static void moments_survive_the_way_to_text_and_back(void)
{
    static const uint64_t moments[] = { 0, 1, 999, 1000, 1763200800123, 253402300799999 };
    char text[TIME_TEXT_SIZE];
    uint64_t ms;

    for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
        format_time_ms(moments[i], text);
        CHECK(parse_time_ms(text, &ms) == 0 && ms == moments[i], "('%s')", text);
    }
    format_time_ms(86400123, text);
    CHECK_TEXT(text, "1970-01-02T00:00:00.123Z");
    CHECK(parse_time_ms("1970-01-02T00:00:00Z", &ms) == 0 && ms == 86400000);
    CHECK(parse_time_ms("1970-01-02T00:00:00", &ms) == -EINVAL);
    CHECK(parse_time_ms("yesterday", &ms) == -EINVAL);
    CHECK(parse_time_ms("1969-01-02T00:00:00Z", &ms) == -ERANGE);
}

static void handles_begin_with_a_letter_or_digit(void)
{
    CHECK(is_handle("a", 1) && is_handle("Turn-1_x.y", 10) && is_handle("0", 8));
    CHECK(!is_handle("", 8) && !is_handle("ab", 1) && !is_handle(".a", 8) && !is_handle("-a", 8));
    CHECK(!is_handle("a/b", 8) && !is_handle("a b", 8) && !is_handle("\xc3\xa4", 8));
}

static void numbers_are_whole_and_decimal(void)
{
    uint64_t value;

    CHECK(parse_u64("18446744073709551615", &value) == 0 && value == UINT64_MAX);
    CHECK(parse_u64("007", &value) == 0 && value == 7);
    CHECK(parse_u64("", &value) == -EINVAL);
    CHECK(parse_u64("-1", &value) == -EINVAL);
    CHECK(parse_u64("1.0", &value) == -EINVAL);
    CHECK(parse_u64("0x1", &value) == -EINVAL);
}

static void cpus_are_thousandths(void)
{
    uint32_t millis;

    CHECK(parse_cpus("1.5", &millis) == 0 && millis == 1500);
    CHECK(parse_cpus("0.001", &millis) == 0 && millis == 1);
    CHECK(parse_cpus("5000000", &millis) == -ERANGE);
    CHECK(parse_cpus("two", &millis) == -EINVAL);
}

static void booleans_have_four_spellings_each(void)
{
    bool value = false;

    CHECK(parse_bool("Yes", &value) == 0 && value);
    CHECK(parse_bool("off", &value) == 0 && !value);
    CHECK(parse_bool("1", &value) == 0 && value);
    CHECK(parse_bool("false", &value) == 0 && !value);
    CHECK(parse_bool("", &value) == -EINVAL);
    CHECK(parse_bool("maybe", &value) == -EINVAL);
}

static void names_cannot_be_paths(void)
{
    static const char *const bad[] = { "",   ".", "..",  "../x", "a/b",     "-a",
                                       "_a", "A", "a b", "a\n",  "\xc3\xa4" };
    char longest[66];

    memset(longest, 'a', sizeof(longest));
    longest[64] = '\0';
    CHECK(is_name(longest));
    longest[64] = 'a';
    longest[65] = '\0';
    CHECK(!is_name(longest));
    CHECK(is_name("debian-12.1_x") && is_name("0"));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!is_name(bad[i]), "('%s')", bad[i]);
}

int main(void)
{
    RUN(sizes_are_powers_of_1024);
    RUN(what_is_not_a_size_is_refused);
    RUN(what_would_overflow_is_out_of_range);
    RUN(durations_have_units_and_seconds_are_the_default);
    RUN(parts_of_a_duration_have_units_and_grow_smaller);
    RUN(moments_survive_the_way_to_text_and_back);
    RUN(handles_begin_with_a_letter_or_digit);
    RUN(numbers_are_whole_and_decimal);
    RUN(cpus_are_thousandths);
    RUN(booleans_have_four_spellings_each);
    RUN(names_cannot_be_paths);
    return 0;
}
