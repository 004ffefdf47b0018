// SPDX-License-Identifier: Apache-2.0
/* What rules mean, path by path. */
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "check.h"
#include "view/preset.h"
#include "view/rules.h"

static struct view_rules *compile(const char *text)
{
    struct view_rules *rules = NULL;
    struct err err = { 0 };

    CHECK(view_rules_parse(text, 7, &rules, &err) == 0, "(%s: %s)", text, err.msg);
    return rules;
}

static void check_level(const char *text, const char *path, const char *wanted)
{
    cleanup_view_rules struct view_rules *rules = compile(text);

    CHECK(strcmp(view_level_name(view_decide(rules, path).level), wanted) == 0,
          "(%s under %s: %s, wanted %s)", path, text,
          view_level_name(view_decide(rules, path).level), wanted);
}

static void check_refused(const char *text, const char *why)
{
    struct view_rules *rules = NULL;
    struct err err = { 0 };

    CHECK(view_rules_parse(text, 1, &rules, &err) < 0, "(%s)", text);
    CHECK(strstr(err.msg, why), "(%s: got '%s')", text, err.msg);
    CHECK(!rules);
}

static void two_stars_are_any_depth(void)
{
    check_level("**/secrets/**=read", "/secrets/x", "read");
    check_level("**/secrets/**=read", "/a/b/secrets/c/d", "read");
    check_level("**/secrets/**=read", "/a/secrets", "read");
    check_level("**/secrets/**=read", "/a/secretss/x", "none");
    check_level("/a/**/b/**/c=read", "/a/b/c", "read");
    check_level("/a/**/b/**/c=read", "/a/x/y/b/b/z/c", "read");
    check_level("/a/**/b/**/c=read", "/a/x/c", "none");
    check_level("**=read", "/", "read");
    check_level("**/*=read", "/", "none");
    check_level("/src/**=write", "/src", "write");
    check_level("/src/**=write", "/srcs/x", "none");
}

static void wildcards_stay_in_one_component(void)
{
    check_level("*.md=read", "/README.md", "read");
    check_level("*.md=read", "/docs/README.md", "none");
    check_level("/output/*=write", "/output", "none");
    check_level("/output/*=write", "/output/x", "write");
    check_level("/output/*=write", "/output/x/y", "none");
    check_level("/a?c=read", "/abc", "read");
    check_level("/a?c=read", "/a/c", "none");
    check_level("/a?c=read",
                "/a\xc3\xa4"
                "c",
                "read");
    check_level("/a?c=read",
                "/a\xff"
                "c",
                "read");
    check_level("/*a*b*=read", "/xxaxxbxx", "read");
    check_level("/*a*b*=read", "/xxbxxaxx", "none");
    check_level("/.*=read", "/.env", "read");
    check_level("/*=read", "/.env", "read");
}

static void classes_and_braces_work(void)
{
    check_level("/[a-c]x=read", "/bx", "read");
    check_level("/[a-c]x=read", "/dx", "none");
    check_level("/[!a-c]x=read", "/dx", "read");
    check_level("/[^a-c]x=read", "/ax", "none");
    check_level("/[]x]=read", "/]", "read");
    check_level("/[a-]=read", "/-", "read");
    check_level("/[\xc3\xa0-\xc3\xa5]=read", "/\xc3\xa4", "read");
    check_level("/{src,lib/deep}/**=read", "/lib/deep/x", "read");
    check_level("/{src,lib/deep}/**=read", "/lib/x", "none");
    check_level("**/*.{key,p{em,12}}=read", "/a/x.p12", "read");
    check_level("/a{,b}=read", "/a", "read");
    check_level("/\\*\\{=read", "/*{", "read");
    check_level("/\\*=read", "/x", "none");
    check_level("/[{]=read", "/{", "read");
}

static void a_plain_path_is_all_below_it_unless_it_is_a_file(void)
{
    check_level("/vendor=read", "/vendor", "read");
    check_level("/vendor=read", "/vendor/a/b", "read");
    check_level("vendor/=read", "/vendor/a", "read");
    check_level("file:/vendor=read", "/vendor/a", "none");
    check_level("file:/vendor=read", "/vendor", "read");
    check_level("glob:/vendor=read", "/vendor/a", "none");
    check_level("directory:/a*=read", "/a*/b", "read");
    check_level("directory:/a*=read", "/ab", "none");
    check_level("/=read", "/any/where", "read");
    check_level("/=read", "/", "read");
    check_level("/a=b=read", "/a=b", "read");
}

static void the_order_is_priority_type_specificity_and_as_written(void)
{
    check_level("/a/**=read\n**=write@1", "/a/x", "write");
    check_level("**/.env=none\nfile:/.env=read", "/.env", "read");
    check_level("directory:/a=view\nfile:/a/b=read\nglob:/a/b=write", "/a/b", "read");
    check_level("/a=read\n/a/b=write", "/a/b/c", "write");
    check_level("/a/b=write\n/a=read", "/a/b/c", "write");
    check_level("**/*=read\n**/x*=write", "/x1", "write");
    check_level("**/x*=write\n**/*=read", "/x1", "write");
    check_level("/src/**=write\n**/.env=none", "/src/.env", "none");
    check_level("**/.env=none\n/src/**=write", "/src/.env", "none");
    check_level("/vendor/**=read\n**/*.c=write", "/vendor/x.c", "read");
    check_level("/?a=read\n/a?=write", "/aa", "read");
    check_level("/a?=write\n/?a=read", "/aa", "write");
    check_level("**=read@-5\n**=view@-6", "/x", "read");
}

static void the_deciding_rule_has_its_index_as_written(void)
{
    cleanup_view_rules struct view_rules *rules =
        compile("# all\n**=read\n\n/{x,out}/**=write@5\n");

    CHECK(view_decide(rules, "/a").rule == 0);
    CHECK(view_decide(rules, "/out/a").rule == 1);
    CHECK(view_rules_generation(rules) == 7 && view_rules_count(rules) == 2);
    CHECK_TEXT(view_rules_at(rules, 1)->pattern, "/{x,out}/**");
    view_rules_free(TAKE_PTR(rules));
    rules = compile("");
    CHECK(view_decide(rules, "/a").rule == -1 && view_decide(rules, "/a").level == VIEW_NONE);
}

static void what_is_hidden_hides_all_below_it(void)
{
    check_level("**=read\n/secrets/*=none", "/secrets/a/b", "none");
    check_level("**=read\nfile:/secrets=none", "/secrets/a", "none");
    check_level("**/credentials*=none@100\n**/*=read", "/credentials/aws", "none");
    check_level("**=none\n/src/**=write", "/src/a", "write");
    check_level("**=none@1\n/src/**=write", "/src/a", "none");
    check_level("**/build=none\n/src/**=write", "/src/build/x", "none");
}

static void directories_above_what_is_seen_are_there(void)
{
    cleanup_view_rules struct view_rules *rules =
        compile("/a/b/*.c=read\n/a/b/c=none\n/d/**=read\n/d/e=none@3\n");

    CHECK(view_decide_entry(rules, "/", true).level == VIEW_VIEW);
    CHECK(view_decide_entry(rules, "/a", true).level == VIEW_VIEW);
    CHECK(view_decide_entry(rules, "/a/b", true).level == VIEW_VIEW);
    CHECK(view_decide_entry(rules, "/a", false).level == VIEW_NONE);
    CHECK(view_decide_entry(rules, "/a/b/x", true).level == VIEW_NONE);
    CHECK(view_decide_entry(rules, "/b", true).level == VIEW_NONE);
    CHECK(view_decide_entry(rules, "/d", true).level == VIEW_READ);
    CHECK(view_decide_entry(rules, "/d/e", true).level == VIEW_NONE);
    CHECK(!view_may_show_below(rules, "/d/e/f"));
    view_rules_free(TAKE_PTR(rules));
    rules = compile("**/secrets/**=none@9\n**/*.md=read");
    CHECK(view_may_show_below(rules, "/x/y"));
    CHECK(!view_may_show_below(rules, "/x/secrets"));
    view_rules_free(TAKE_PTR(rules));
    rules = compile("");
    CHECK(view_decide_entry(rules, "/", true).level == VIEW_VIEW);
}

static bool may_forbid(const char *text, const char *path)
{
    cleanup_view_rules struct view_rules *rules = compile(text);

    return view_may_forbid_below(rules, path);
}

static void new_names_are_safe_only_where_no_rule_is_narrower(void)
{
    CHECK(!may_forbid("**=write", "/"));
    CHECK(!may_forbid("**/*=write", "/"));
    CHECK(!may_forbid("**=read\n/out/**=write@1", "/out"));
    CHECK(!may_forbid("**=read\n/out/**=write@1", "/out/a/b"));
    CHECK(may_forbid("**=read\n/out/**=write@1", "/"));
    CHECK(may_forbid("**=read\n/out/**=write@1\n**/.env*=none@2", "/out"));
    CHECK(!may_forbid("**/.env*=none\n/out/**=write@2", "/out"));
    CHECK(may_forbid("/out/*=write", "/out"));
    CHECK(may_forbid("", "/"));
    CHECK(!may_forbid("**=write\n/vendor=read", "/src"));
    CHECK(may_forbid("**=write\n/vendor=read", "/vendor/x"));
}

static void bad_rules_are_refused(void)
{
    check_refused("/a[b=read", "no ']'");
    check_refused("/a{b=read", "'{' without '}'");
    check_refused("/*}b=read", "'}' without '{'");
    check_refused("/a{b}=read", "no comma");
    check_refused("/a/b\\=read", "backslash");
    check_refused("/[z-a]=read", "ends before it begins");
    check_refused("/foo**=read", "whole component");
    check_refused("/a/../b=read", "'..'");
    check_refused("/{a,..}/b=read", "'..'");
    check_refused("=read", "empty");
    check_refused("/a", "not PATTERN=LEVEL");
    check_refused("/a=rw", "not none, view, read or write");
    check_refused("/a=read@x", "priority");
    check_refused("/a=read@1000001", "priority");
    check_refused("/a\x01=read", "control character");
    check_refused("/\xff=read", "not UTF-8");
    check_refused("**=read\n\n/a=rw", "line 3");
    check_refused("/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}=read", "over 64 expansions");
}

static void lists_are_bounded(void)
{
    struct buf text = BUF_INIT(1 << 20);
    struct view_rules *rules = NULL;
    struct err err = { 0 };

    for (int i = 0; i <= VIEW_RULES_MAX; i++)
        CHECK(buf_printf(&text, "/a%d=read\n", i) == 0);
    CHECK(view_rules_parse(text.data, 1, &rules, &err) < 0 && err.kind == ERR_EXHAUSTED);
    buf_clear(&text);
    for (int i = 0; i < 70; i++)
        CHECK(buf_printf(&text, "/%01000d=read\n", i) == 0);
    CHECK(view_rules_parse(text.data, 1, &rules, &err) < 0 && err.kind == ERR_EXHAUSTED);
    buf_clear(&text);
    for (int i = 0; i < 65; i++)
        CHECK(buf_printf(&text, "/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}=read\n") == 0);
    CHECK(view_rules_parse(text.data, 1, &rules, &err) < 0 && err.kind == ERR_EXHAUSTED);
    buf_clear(&text);
    for (int i = 0; i < 70; i++)
        CHECK(buf_add_str(&text, "/a") == 0);
    CHECK(buf_add_str(&text, "=read") == 0);
    CHECK(view_rules_parse(text.data, 1, &rules, &err) < 0 && err.kind == ERR_INVALID);
    buf_done(&text);
}

/* Appends the text so many times. */
static void repeat(struct buf *out, const char *text, int count)
{
    for (int i = 0; i < count; i++)
        CHECK(buf_add_str(out, text) == 0);
}

/* Patterns that make a naive matcher work for years. */
static void no_pattern_takes_exponential_time(void)
{
    struct buf path = BUF_INIT(1024), pattern = BUF_INIT(1024);

    repeat(&pattern, "/", 1);
    repeat(&pattern, "*a", 40);
    repeat(&pattern, "b=read", 1);
    repeat(&path, "/", 1);
    repeat(&path, "a", 254);
    check_level(pattern.data, path.data, "none");
    buf_clear(&pattern);
    buf_clear(&path);
    repeat(&pattern, "/**/a", 25);
    repeat(&pattern, "/b=read", 1);
    repeat(&path, "/a", 140);
    check_level(pattern.data, path.data, "none");
    buf_done(&pattern);
    buf_done(&path);
}

static void text_and_json_read_back_the_same(void)
{
    const char *text = "/vendor=read\nfile:/x=none@-3\nglob:/y=view\ndirectory:/a*=write@9\n"
                       "/{a,b}/**/[!x]?=read\n";
    cleanup_view_rules struct view_rules *rules = compile(text), *again = NULL;
    cleanup_json json_t *json = view_rules_to_json(rules);
    struct buf out = BUF_INIT(VIEW_TEXT_MAX);
    struct err err = { 0 };

    CHECK(view_rules_format(rules, &out) == 0);
    CHECK_TEXT(out.data, text);
    CHECK(view_rules_from_json(json, 8, &again, &err) == 0, "(%s)", err.msg);
    buf_clear(&out);
    CHECK(view_rules_format(again, &out) == 0);
    CHECK_TEXT(out.data, text);
    CHECK(view_rules_generation(again) == 8);
    buf_done(&out);
}

static void json_with_anything_unknown_is_refused(void)
{
    static const char *const bad[] = {
        "[1]",
        "[{}]",
        "[{\"pattern\":\"/a\"}]",
        "[{\"pattern\":\"/a\",\"level\":\"rw\"}]",
        "[{\"pattern\":\"/a\",\"level\":\"read\",\"type\":\"link\"}]",
        "[{\"pattern\":\"/a\",\"level\":\"read\",\"priority\":\"1\"}]",
        "[{\"pattern\":\"/a\",\"level\":\"read\",\"permission\":1}]",
        "{}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cleanup_json json_t *json = json_loads(bad[i], 0, NULL);
        struct view_rules *rules = NULL;
        struct err err = { 0 };

        CHECK(json && view_rules_from_json(json, 1, &rules, &err) < 0, "(%s)", bad[i]);
        CHECK(err.kind == ERR_INVALID && !rules);
    }
}

static void presets_mean_what_they_say(void)
{
    static const struct {
        const char *preset, *path, *level;
    } rows[] = {
        { "view-only", "/", "view" },
        { "view-only", "/a/b", "view" },
        { "read-only", "/a/b", "read" },
        { "full-access", "/a/b", "write" },
        { "full-access", "/", "write" },
        { "agent-safe", "/src/main.c", "read" },
        { "agent-safe", "/output", "write" },
        { "agent-safe", "/output/x/y", "write" },
        { "agent-safe", "/tmp/x", "write" },
        { "agent-safe", "/secrets/api.txt", "none" },
        { "agent-safe", "/a/secrets/d/k", "none" },
        { "agent-safe", "/a/b/secrets/k", "none" },
        { "agent-safe", "/secrets", "none" },
        { "agent-safe", "/.git/config", "none" },
        { "agent-safe", "/.git", "none" },
        { "agent-safe", "/sub/.git/HEAD", "none" },
        { "agent-safe", "/.gitignore", "read" },
        { "agent-safe", "/.env", "none" },
        { "agent-safe", "/output/.env.local", "none" },
        { "agent-safe", "/credentials", "none" },
        { "agent-safe", "/credentials/aws", "none" },
        { "agent-safe", "/a/tls.key", "none" },
        { "agent-safe", "/a/b/tls.pem", "none" },
        { "development", "/src/x", "write" },
        { "development", "/.git/config", "write" },
        { "development", "/a/credentials", "write" },
        { "development", "/a/.env", "none" },
        { "development", "/secrets/x", "none" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check_level(view_preset_find(rows[i].preset)->rules, rows[i].path, rows[i].level);
    CHECK(!view_preset_find("safe") && view_preset_at(4) && !view_preset_at(5));
}

static void the_levels_that_paths_may_have_are_known(void)
{
    static const unsigned sealed = VIEW_HAS_NONE | VIEW_HAS_READ;
    static const struct {
        const char *rules;
        unsigned wanted;
        int writes; /* the first rule of level write */
    } rows[] = {
        { "", VIEW_HAS_NONE, -1 },
        { "**=read", VIEW_HAS_READ, -1 },
        { "/docs/**=read", sealed, -1 },
        { "**=read\n**/.env=none\n/src/*.c=none", sealed, -1 },
        { "**=read@1\n/src/**=write\n/x=view", VIEW_HAS_READ, -1 }, /* the others never decide */
        { "**=read\n/src/*.c=view", VIEW_HAS_READ | VIEW_HAS_VIEW, -1 },
        { "**=write", VIEW_HAS_WRITE, 0 },
        { "**=write@1\n/vendor/**=read", VIEW_HAS_WRITE, 0 },
        { "**=read\n/src/**=write", VIEW_HAS_READ | VIEW_HAS_WRITE, 1 },
        { "**=read\nfile:/notes=write", VIEW_HAS_READ | VIEW_HAS_WRITE, 1 },
        { "**=write\n**/.env=none", VIEW_HAS_WRITE | VIEW_HAS_NONE, 0 },
        { "file:/=write", VIEW_HAS_WRITE | VIEW_HAS_NONE, 0 },
    };
    int rules[VIEW_LEVELS];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        cleanup_view_rules struct view_rules *compiled = compile(rows[i].rules);

        CHECK(view_levels(compiled, rules) == rows[i].wanted, "(%s)", rows[i].rules);
        CHECK(rules[VIEW_WRITE] == rows[i].writes, "(%s)", rows[i].rules);
    }
}

static void paths_have_one_spelling(void)
{
    char path[64];

    CHECK(view_path_normalize("a//b/./c/", path, sizeof(path)) == 0);
    CHECK_TEXT(path, "/a/b/c");
    CHECK(view_path_normalize("", path, sizeof(path)) == 0);
    CHECK_TEXT(path, "/");
    CHECK(view_path_normalize("/a/../b", path, sizeof(path)) == -EINVAL);
    CHECK(view_path_normalize("/aaaaaaaa", path, 8) == -ENAMETOOLONG);
}

static void paths_beyond_the_limit_are_hidden(void)
{
    cleanup_view_rules struct view_rules *rules = compile("**=write");
    struct buf path = BUF_INIT(9000);

    repeat(&path, "/a", 2045);
    CHECK(view_decide(rules, path.data).level == VIEW_WRITE);
    repeat(&path, "a", 17);
    CHECK(view_decide(rules, path.data).level == VIEW_NONE);
    CHECK(view_may_forbid_below(rules, path.data) && !view_may_show_below(rules, path.data));
    buf_done(&path);
}

int main(void)
{
    RUN(two_stars_are_any_depth);
    RUN(wildcards_stay_in_one_component);
    RUN(classes_and_braces_work);
    RUN(a_plain_path_is_all_below_it_unless_it_is_a_file);
    RUN(the_order_is_priority_type_specificity_and_as_written);
    RUN(the_deciding_rule_has_its_index_as_written);
    RUN(what_is_hidden_hides_all_below_it);
    RUN(directories_above_what_is_seen_are_there);
    RUN(new_names_are_safe_only_where_no_rule_is_narrower);
    RUN(bad_rules_are_refused);
    RUN(lists_are_bounded);
    RUN(no_pattern_takes_exponential_time);
    RUN(text_and_json_read_back_the_same);
    RUN(json_with_anything_unknown_is_refused);
    RUN(presets_mean_what_they_say);
    RUN(the_levels_that_paths_may_have_are_known);
    RUN(paths_have_one_spelling);
    RUN(paths_beyond_the_limit_are_hidden);
    return 0;
}
