// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"
#include "check.h"

struct wanted {
    const char *memory;
    bool tty;
    bool quiet;
};

static int set_memory(void *into, const char *value, struct err *err)
{
    if (strcmp(value, "bad") == 0)
        return err_set(err, ERR_INVALID, "bad memory");
    ((struct wanted *)into)->memory = value;
    return 0;
}

static int set_tty(void *into, const char *value, struct err *err)
{
    (void)err;
    CHECK(!value, "(a flag has no value)");
    ((struct wanted *)into)->tty = true;
    return 0;
}

static int set_quiet(void *into, const char *value, struct err *err)
{
    (void)err;
    CHECK(!value, "(a flag has no value)");
    ((struct wanted *)into)->quiet = true;
    return 0;
}

static const struct option_row rows[] = {
    { "memory", 'm', "SIZE", "how much memory", set_memory },
    { "tty", 't', NULL, "give it a terminal", set_tty },
    { "quiet", 0, NULL, "say less", set_quiet },
};
static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Parses words up to NULL, of which the first is the command name. */
static int parse(const char *const *words, struct wanted *wanted, int *next, struct err *err)
{
    int count = 0;

    *wanted = (struct wanted){ 0 };
    *err = (struct err){ 0 };
    while (words[count])
        count++;
    return options_parse(&table, wanted, count, (char *const *)(uintptr_t)words, next, err);
}

#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        "run", __VA_ARGS__, NULL                                                                   \
    }

static void a_value_may_follow_or_be_joined(void)
{
    const char *const *forms[] = {
        WORDS("--memory", "1G"), WORDS("--memory=1G"), WORDS("-m", "1G"),
        WORDS("-m1G"),           WORDS("-tm1G"),       WORDS("-tm", "1G")
    };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct wanted wanted;
        struct err err;
        int next;

        CHECK(parse(forms[i], &wanted, &next, &err) == 0, "(form %zu: %s)", i, err.msg);
        CHECK_TEXT(wanted.memory, "1G");
        CHECK(!forms[i][next], "(form %zu)", i);
    }
}

static void options_end_at_the_first_operand_or_behind_dashes(void)
{
    struct wanted wanted;
    struct err err;
    int next;

    CHECK(parse(WORDS("-t", "cmd", "--quiet"), &wanted, &next, &err) == 0);
    CHECK(next == 2 && wanted.tty && !wanted.quiet);
    CHECK(parse(WORDS("--", "--quiet"), &wanted, &next, &err) == 0);
    CHECK(next == 2 && !wanted.quiet);
    CHECK(parse(WORDS("-"), &wanted, &next, &err) == 0);
    CHECK(next == 1, "(a single dash is an operand)");
    CHECK(parse(WORDS("--memory", "--", "x"), &wanted, &next, &err) == 0);
    CHECK(next == 3, "(what follows --memory is its value)");
    CHECK_TEXT(wanted.memory, "--");
}

static void mistakes_are_named(void)
{
    static const char *const messages[] = {
        "unknown option --mem",       "unknown option -x",    "option --tty takes no value",
        "option --memory needs SIZE", "option -m needs SIZE", "bad memory"
    };
    const char *const *lines[] = { WORDS("--mem", "1"), WORDS("-tx"), WORDS("--tty=yes"),
                                   WORDS("--memory"),   WORDS("-m"),  WORDS("--memory=bad") };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct wanted wanted;
        struct err err;
        int next;

        CHECK(parse(lines[i], &wanted, &next, &err) == -EINVAL, "(line %zu)", i);
        CHECK(err.kind == ERR_INVALID);
        CHECK_TEXT(err.msg, messages[i]);
    }
}

static void help_has_one_line_for_each_option(void)
{
    cleanup_free char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    CHECK(out);
    options_help(&table, out);
    CHECK(fclose(out) == 0);
    CHECK(strstr(text, "-m, --memory SIZE") && strstr(text, "how much memory\n"), "(%s)", text);
    CHECK(strstr(text, "    --quiet "), "(%s)", text);
}

static void options_may_stand_behind_operands(void)
{
    char words[][8] = { "diff", "a", "-m1", "b", "--tty", "--", "--quiet" };
    char *argv[ARRAY_SIZE(words) + 1] = { NULL };
    struct wanted wanted = { 0 };
    struct err err = { 0 };
    int next = 0;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        argv[i] = words[i];
    CHECK(options_parse_anywhere(&table, &wanted, ARRAY_SIZE(words), argv, &next, &err) == 0);
    CHECK_TEXT(wanted.memory, "1");
    CHECK(wanted.tty && !wanted.quiet);
    CHECK(next == 4);
    CHECK_TEXT(argv[4], "a");
    CHECK_TEXT(argv[5], "b");
    CHECK_TEXT(argv[6], "--quiet");
}

static void shared_rows_are_options_too(void)
{
    static const struct option_row own[] = { { "own", 'o', NULL, "one's own", set_quiet } };
    static const struct option_table joined = { own, ARRAY_SIZE(own), &table };
    char name[] = "x", first[] = "-o", second[] = "--tty";
    char *const argv[] = { name, first, second, NULL };
    struct wanted wanted = { 0 };
    struct err err = { 0 };
    int next = 0;

    CHECK(options_parse(&joined, &wanted, 3, argv, &next, &err) == 0);
    CHECK(wanted.quiet && wanted.tty && next == 3);
}

int main(void)
{
    RUN(options_may_stand_behind_operands);
    RUN(shared_rows_are_options_too);
    RUN(a_value_may_follow_or_be_joined);
    RUN(options_end_at_the_first_operand_or_behind_dashes);
    RUN(mistakes_are_named);
    RUN(help_has_one_line_for_each_option);
    return 0;
}
