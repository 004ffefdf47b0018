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
    { "memory", 'm', "SIZE", "how much memory", OPTION_CALL(set_memory) },
    { "tty", 't', NULL, "give it a terminal", OPTION_CALL(set_tty) },
    { "quiet", 0, NULL, "say less", OPTION_CALL(set_quiet) },
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
    static const struct option_row own[] = { { "own", 'o', NULL, "one's own",
                                               OPTION_CALL(set_quiet) } };
    static const struct option_table joined = { own, ARRAY_SIZE(own), &table };
    char name[] = "x", first[] = "-o", second[] = "--tty";
    char *const argv[] = { name, first, second, NULL };
    struct wanted wanted = { 0 };
    struct err err = { 0 };
    int next = 0;

    CHECK(options_parse(&joined, &wanted, 3, argv, &next, &err) == 0);
    CHECK(wanted.quiet && wanted.tty && next == 3);
}

struct typed {
    bool is_set;
    const char *text, *name, *path;
    uint32_t count, cpu_millis;
    uint64_t number, bytes, ms;
};

static const struct option_row typed_rows[] = {
    { "flag", 'f', NULL, "a flag", OPTION_FLAG(struct typed, is_set) },
    { "text", 0, "TEXT", "any text", OPTION_TEXT(struct typed, text) },
    { "name", 0, "NAME", "a name", OPTION_NAME(struct typed, name) },
    { "path", 0, "PATH", "a path", OPTION_PATH(struct typed, path, "an absolute path") },
    { "count", 'c', "N", "a count", OPTION_U32(struct typed, count, 1, "a number like 20") },
    { "cpus", 0, "CPUS", "cpus", OPTION_CPUS(struct typed, cpu_millis, 1, "a number like 1.5") },
    { "number", 0, "N", "a number", OPTION_U64(struct typed, number, 0, "a number of bytes") },
    { "size", 0, "SIZE", "a size", OPTION_SIZE(struct typed, bytes, 1, "a size like 2G") },
    { "time", 0, "TIME", "a time", OPTION_DURATION(struct typed, ms, 1, "a time like 30s") },
};
static const struct option_table typed_table = { typed_rows, ARRAY_SIZE(typed_rows), NULL };

static int parse_typed(struct typed *ret, struct err *err, const char *word, const char *value)
{
    char *argv[] = { (char *)(uintptr_t) "test", (char *)(uintptr_t)word, (char *)(uintptr_t)value,
                     NULL };
    int next;

    *ret = (struct typed){ .is_set = false };
    return options_parse(&typed_table, ret, value ? 3 : 2, argv, &next, err);
}

static void values_go_into_fields_of_their_type(void)
{
    struct typed typed;
    struct err err;

    CHECK(parse_typed(&typed, &err, "-f", NULL) == 0 && typed.is_set);
    CHECK(parse_typed(&typed, &err, "--text", "") == 0);
    CHECK_TEXT(typed.text, "");
    CHECK(parse_typed(&typed, &err, "--name=base", NULL) == 0);
    CHECK_TEXT(typed.name, "base");
    CHECK(parse_typed(&typed, &err, "--path", "/a b") == 0);
    CHECK_TEXT(typed.path, "/a b");
    CHECK(parse_typed(&typed, &err, "-c4294967295", NULL) == 0 && typed.count == UINT32_MAX);
    CHECK(parse_typed(&typed, &err, "--cpus", "1.5") == 0 && typed.cpu_millis == 1500);
    CHECK(parse_typed(&typed, &err, "--number", "0") == 0 && typed.number == 0);
    CHECK(parse_typed(&typed, &err, "--size", "2K") == 0 && typed.bytes == 2048);
    CHECK(parse_typed(&typed, &err, "--time", "2m") == 0 && typed.ms == 120000);
}

static void a_wrong_value_is_named_with_what_it_is_not(void)
{
    static const char *const wrong[][3] = {
        { "--name", "No!", "--name 'No!' is not a name" },
        { "--path", "a", "--path 'a' is not an absolute path" },
        { "--count", "0", "--count '0' is not a number like 20" },
        { "--count", "4294967296", "--count '4294967296' is not a number like 20" },
        { "--cpus", "many", "--cpus 'many' is not a number like 1.5" },
        { "--number", "-1", "--number '-1' is not a number of bytes" },
        { "--size", "0", "--size '0' is not a size like 2G" },
        { "--time", "soon", "--time 'soon' is not a time like 30s" },
    };
    struct typed typed;
    struct err err;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(parse_typed(&typed, &err, wrong[i][0], wrong[i][1]) == -EINVAL);
        CHECK_TEXT(err.msg, wrong[i][2]);
    }
}

int main(void)
{
    RUN(options_may_stand_behind_operands);
    RUN(shared_rows_are_options_too);
    RUN(a_value_may_follow_or_be_joined);
    RUN(options_end_at_the_first_operand_or_behind_dashes);
    RUN(mistakes_are_named);
    RUN(help_has_one_line_for_each_option);
    RUN(values_go_into_fields_of_their_type);
    RUN(a_wrong_value_is_named_with_what_it_is_not);
    return 0;
}
