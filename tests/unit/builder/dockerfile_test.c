/* Dockerfiles: instructions, words and variables, stages, and the steps that they become. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "builder/dockerfile/parse.h"
#include "builder/dockerfile/plan.h"
#include "builder/dockerfile/words.h"
#include "check.h"

/* Prints what was parsed as "KEYWORD flags|text|documents;". */
static void parsed_print(const struct dockerfile *file, char *into, size_t size)
{
    size_t used = 0;

    into[0] = '\0';
    for (size_t i = 0; i < file->count; i++) {
        const struct instruction *item = &file->items[i];

        used += (size_t)snprintf(into + used, size - used, "%s", item->keyword);
        for (size_t j = 0; j < item->flag_count; j++)
            used += (size_t)snprintf(into + used, size - used, " %s", item->flags[j]);
        used += (size_t)snprintf(into + used, size - used, "|%s", item->text);
        for (size_t j = 0; j < item->heredoc_count; j++)
            used += (size_t)snprintf(into + used, size - used, "|%s=%s", item->heredocs[j].name,
                                     item->heredocs[j].text);
        used += (size_t)snprintf(into + used, size - used, ";");
    }
}

static void instructions_are_read(void)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "FROM a", "FROM|a;" },
        { "from  a  ", "FROM|a;" },
        { "\xef\xbb\xbf"
          "FROM a\r\nRUN b\r\n",
          "FROM|a;RUN|b;" },
        { "# c\n\nFROM a\n  # d\n\tRUN b", "FROM|a;RUN|b;" },
        { "RUN a \\\n  b", "RUN|a   b;" },
        { "RUN a \\ \n# c\n\n  b \\\n c", "RUN|a   b  c;" },
        { "RUN a \\", "RUN|a;" },
        { "# escape=`\nRUN a `\nb \\\nRUN c", "RUN|a b \\;RUN|c;" },
        { "# syntax=x\n# escape=`\nRUN a\\\nRUN b", "RUN|a\\;RUN|b;" },
        { "# comment\n# escape=`\nRUN a\\\nb", "RUN|ab;" },
        { "COPY --from=x --chown=1:2 a b", "COPY --from=x --chown=1:2|a b;" },
        { "RUN <<EOF\na\n# b\nEOF\nRUN c", "RUN|<<EOF|EOF=a\n# b\n;RUN|c;" },
        { "RUN <<-'A' <<B\n\tx\n\tA\ny\nB\n", "RUN|<<-'A' <<B|A=x\n|B=y\n;" },
        { "RUN echo \"<<A\" '<<B'", "RUN|echo \"<<A\" '<<B';" },
        { "RUN [\"a\", \"<<A\"]", "RUN|[\"a\", \"<<A\"];" },
        { "RUN a<<A", "RUN|a<<A;" },
        { "ENV a=<<A", "ENV|a=<<A;" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dockerfile file;
        struct err err = { 0 };
        char text[512];

        CHECK(dockerfile_parse(cases[i].text, strlen(cases[i].text), &file, &err) == 0);
        parsed_print(&file, text, sizeof(text));
        if (strcmp(text, cases[i].wanted) != 0)
            printf("%zu: '%s' is not '%s'\n", i, text, cases[i].wanted);
        CHECK(strcmp(text, cases[i].wanted) == 0);
        dockerfile_done(&file);
    }
}

static void errors_name_the_line(void)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "FROM a\n\nFRUN b", "line 3: unknown instruction 'FRUN'" },
        { "FROM", "line 1: FROM needs an argument" },
        { "FROM a\nRUN <<EOF\nb", "line 2: the document 'EOF' has no end" },
        { "RUN --a --b", "line 1: RUN needs an argument" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dockerfile file;
        struct err err = { 0 };

        CHECK(dockerfile_parse(cases[i].text, strlen(cases[i].text), &file, &err) < 0);
        CHECK(strcmp(err.msg, cases[i].wanted) == 0);
    }
}

static void words_are_expanded(void)
{
    static const struct {
        const char *word, *wanted;
    } cases[] = {
        { "a", "a" },
        { "$A", "one" },
        { "x${A}y", "xoney" },
        { "$AB", "" },
        { "${B:-two}", "two" },
        { "${A:-two}", "one" },
        { "${A:+two}", "two" },
        { "${B:+two}", "" },
        { "${EMPTY:-two}", "two" },
        { "${B:-${A}}", "one" },
        { "${B:-$C}", "three" },
        { "'$A'", "$A" },
        { "\"$A b\"", "one b" },
        { "\\$A", "$A" },
        { "a\\ b", "a b" },
        { "\"a\\\"b\\n\"", "a\"b\\n" },
        { "a'b'\"c\"", "abc" },
        { "$", "$" },
        { "a$", "a$" },
        { "$-", "$-" },
    };
    cleanup_json json_t *env = json_pack("{s:s, s:s}", "A", "one", "EMPTY", "");
    cleanup_json json_t *args = json_pack("{s:s, s:s}", "A", "hidden", "C", "three");
    const struct scope scope = { .env = env, .args = args, .escape = '\\' };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_free char *text = NULL;
        struct err err = { 0 };

        CHECK(word_expand(cases[i].word, &scope, &text, &err) == 0);
        if (strcmp(text, cases[i].wanted) != 0)
            printf("%s: '%s' is not '%s'\n", cases[i].word, text, cases[i].wanted);
        CHECK(strcmp(text, cases[i].wanted) == 0);
    }
}

static void malformed_variables_are_refused(void)
{
    static const char *const words[] = { "${A", "${}", "${A:=b}", "${A-b}", "${:-a}" };
    const struct scope scope = { .escape = '\\' };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        char *text = NULL;
        struct err err = { 0 };

        CHECK(word_expand(words[i], &scope, &text, &err) < 0);
    }
}

static void words_are_split_outside_of_quotes(void)
{
    static const char *const wanted[] = { "a", "\"b c\"", "d='e f'", "g\\ h", NULL };
    cleanup_with(words_free) char **words = NULL;
    struct err err = { 0 };
    size_t i;

    CHECK(words_split("  a \"b c\"\td='e f' g\\ h ", '\\', &words, &err) == 0);
    for (i = 0; wanted[i]; i++)
        CHECK(words[i] && strcmp(words[i], wanted[i]) == 0);
    CHECK(!words[i]);
}

/* --- plans ------------------------------------------------------------------------------------ */

static int look(struct plan *plan, const struct plan_source *source, json_t *paths,
                char ret_hex[65], struct err *err)
{
    (void)plan;
    (void)err;
    for (char *const *pattern = source->patterns; *pattern; pattern++)
        (void)json_array_append_new(paths, json_string(*pattern));
    (void)snprintf(ret_hex, 65, "abc");
    return 0;
}

/* Plans the last stage of a text; returns its steps and settings as text, or the error. */
static char *plan_text(const char *text, const json_t *given)
{
    struct dockerfile file = { .items = NULL };
    struct stages stages = { .count = 0 };
    struct plan plan = { .stages = &stages, .look = look };
    struct err err = { 0 };
    cleanup_json json_t *all = NULL;
    int r = dockerfile_parse(text, strlen(text), &file, &err);

    if (r == 0)
        r = stages_find(&file, given, "amd64", &stages, &err);
    if (r == 0) {
        plan.stage = stages.count - 1;
        plan_init(&plan, NULL, NULL, "", "");
        r = plan_stage(&plan, &err);
        all = json_pack("[O, O, s, s]", plan.steps, plan.image, plan.user, plan.workdir);
        plan_done(&plan);
    }
    stages_done(&stages);
    dockerfile_done(&file);
    return r < 0 ? strdup(err.msg) : json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
}

static void instructions_become_steps(void)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "FROM a\nRUN b c", "[[{\"args\":[\"/bin/sh\",\"-c\",\"b "
                             "c\"],\"env\":{},\"type\":\"EXEC\"}],{},\"\",\"/\"]" },
        { "FROM a\nSHELL [\"x\"]\nRUN b", "[[{\"args\":[\"x\",\"b\"],\"env\":{},\"type\":\"EXEC\"}]"
                                          ",{\"shell\":[\"x\"]},\"\",\"/\"]" },
        { "FROM a\nRUN [\"b\",\"$c\"]",
          "[[{\"args\":[\"b\",\"$c\"],\"env\":{},\"type\":\"EXEC\"}],{},\"\",\"/\"]" },
        { "FROM a\nARG X=1\nENV Y=$X\nRUN b",
          "[[{\"args\":[\"/bin/"
          "sh\",\"-c\",\"b\"],\"env\":{\"X\":\"1\",\"Y\":\"1\"},\"type\":\"EXEC\"}],"
          "{},\"\",\"/\"]" },
        { "FROM a\nWORKDIR b\nWORKDIR c\nUSER d",
          "[[{\"args\":[\"/b\"],\"type\":\"ENTER\"},{\"args\":[\"/b/c\"],\"type\":\"ENTER\"},"
          "{\"args\":[\"d\"],\"type\":\"AS\"}],{},\"d\",\"/b/c\"]" },
        { "FROM a\nCOPY --from=x b c /d/",
          "[[{\"args\":[\"/d/"
          "\",\"\",\"\",\"b\",\"c\"],\"filesHash\":\"abc\",\"from\":\"x\",\"type\":"
          "\"PLACE\"}],{},\"\",\"/\"]" },
        { "FROM a\nCOPY <<F /x/\nb\nF",
          "[[{\"args\":[\"/x/F\",\"\",\"\",\"b\\n\"],\"type\":\"WRITE\"}],{},\"\",\"/\"]" },
        { "FROM a\nCMD b\nENTRYPOINT [\"c\"]",
          "[[],{\"cmd\":[\"/bin/sh\",\"-c\",\"b\"],\"entrypoint\":[\"c\"]},\"\",\"/\"]" },
        { "FROM a\nHEALTHCHECK NONE", "[[],{\"healthcheck\":{\"Test\":[\"NONE\"]}},\"\",\"/\"]" },
        { "FROM a\nEXPOSE 1 2/udp\nLABEL a=b \"c d\"=e\nVOLUME [\"/x\"]",
          "[[],{\"exposedPorts\":{\"1/tcp\":{},\"2/udp\":{}},\"labels\":{\"a\":\"b\",\"c "
          "d\":\"e\"},"
          "\"volumes\":{\"/x\":{}}},\"\",\"/\"]" },
        { "ARG V=1\nFROM a\nARG V\nLABEL v=$V p=$TARGETARCH",
          "[[],{\"labels\":{\"p\":\"\",\"v\":\"1\"}},\"\",\"/\"]" },
        { "FROM a\nARG TARGETARCH\nLABEL p=$TARGETARCH",
          "[[],{\"labels\":{\"p\":\"amd64\"}},\"\",\"/\"]" },
        { "FROM a\nRUN", "line 2: RUN needs an argument" },
        { "RUN a", "line 1: only ARG may stand before the first FROM" },
        { "# nothing", "the Dockerfile has no FROM" },
        { "FROM a b c", "line 1: FROM needs IMAGE or IMAGE AS NAME" },
        { "FROM a\nCOPY b", "line 2: COPY needs a source and a destination" },
        { "FROM a\nCOPY b c d", "line 2: with several sources, the destination must end with '/'" },
        { "FROM a\nCOPY --chmod=9 b c", "line 2: '9' is no octal mode" },
        { "FROM a\nCOPY --x b c", "line 2: flag '--x' is not supported" },
        { "FROM a\nRUN --mount=type=secret b",
          "line 2: '--mount=type=secret': only mounts with type=cache are known" },
        { "FROM a\nHEALTHCHECK --interval=5x CMD b", "line 2: '5x' is no duration such as 30s" },
        { "FROM a\nSHELL b", "line 2: SHELL needs a list: [\"/bin/bash\", \"-c\"]" },
        { "FROM a\nENV b", "line 2: ENV needs NAME=value" },
        { "FROM a\nEXPOSE b", "line 2: 'b' is not PORT, PORT/tcp or PORT/udp" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_free char *text = plan_text(cases[i].text, NULL);

        if (strcmp(text, cases[i].wanted) != 0)
            printf("%s:\n'%s' is not\n'%s'\n", cases[i].text, text, cases[i].wanted);
        CHECK(strcmp(text, cases[i].wanted) == 0);
    }
}

static void given_values_win(void)
{
    cleanup_json json_t *given = json_pack("{s:s, s:s}", "V", "2", "W", "3");
    cleanup_free char *text =
        plan_text("ARG V=1\nFROM a\nARG V=5\nARG W=6\nARG X=7\nLABEL v=$V$W$X", given);

    CHECK(strcmp(text, "[[],{\"labels\":{\"v\":\"237\"}},\"\",\"/\"]") == 0);
}

static void stages_are_found_by_name_and_number(void)
{
    static const char text[] = "FROM a AS One\nFROM b\nFROM one AS two";
    struct dockerfile file;
    struct stages stages;
    struct err err = { 0 };

    CHECK(dockerfile_parse(text, strlen(text), &file, &err) == 0);
    CHECK(stages_find(&file, NULL, "amd64", &stages, &err) == 0);
    CHECK(stage_named(&stages, 2, "one") == 0 && stage_named(&stages, 2, "ONE") == 0);
    CHECK(stage_named(&stages, 2, "1") == 1 && stage_named(&stages, 2, "2") == -1);
    CHECK(stage_named(&stages, 2, "two") == -1 && stage_named(&stages, 0, "one") == -1);
    CHECK(stage_target(&stages, "", &err) == 2 && stage_target(&stages, "two", &err) == 2);
    CHECK(stage_target(&stages, "none", &err) < 0);
    stages_done(&stages);
    dockerfile_done(&file);
}

int main(void)
{
    RUN(instructions_are_read);
    RUN(errors_name_the_line);
    RUN(words_are_expanded);
    RUN(malformed_variables_are_refused);
    RUN(words_are_split_outside_of_quotes);
    RUN(instructions_become_steps);
    RUN(given_values_win);
    RUN(stages_are_found_by_name_and_number);
    return 0;
}
