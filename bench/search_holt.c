// SPDX-License-Identifier: Apache-2.0
/* Calls grep or glob in this process, like a tool worker. Prints the microseconds of each call.
 *
 * usage: search_holt grep|glob COUNT PATTERN DIRECTORY [FLAG...]
 *
 * FLAG is literal, ignore_case, files or count for grep, modified for glob. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "clock.h"
#include "tools/tool.h"

static void set_text(struct tool_value *value, const char *text)
{
    value->type = TOOL_TEXT;
    value->text = (struct tool_text){ .data = text, .len = strlen(text) };
}

static void set_grep(struct tool_values *values, char **flags)
{
    set_text(&values->at[GREP_INCLUDE], "");
    set_text(&values->at[GREP_EXCLUDE], "");
    values->at[GREP_MAX].number = 100000;
    values->at[GREP_MAX_BYTES].number = 8 * 1024 * 1024;
    for (; *flags; flags++) {
        if (strcmp(*flags, "literal") == 0)
            values->at[GREP_LITERAL].number = 1;
        else if (strcmp(*flags, "ignore_case") == 0)
            values->at[GREP_IGNORE_CASE].number = 1;
        else if (strcmp(*flags, "files") == 0)
            values->at[GREP_MODE].number = GREP_FILES;
        else if (strcmp(*flags, "count") == 0)
            values->at[GREP_MODE].number = GREP_COUNT;
    }
    values->count = GREP_HIDDEN + 1;
}

static void set_glob(struct tool_values *values, char **flags)
{
    values->at[GLOB_MAX].number = 100000;
    values->at[GLOB_SORT].number =
        *flags && strcmp(*flags, "modified") == 0 ? GLOB_BY_TIME : GLOB_BY_NAME;
    values->count = GLOB_HIDDEN + 1;
}

int main(int argc, char **argv)
{
    struct tool_values values = { 0 };
    bool is_grep = argc > 1 && strcmp(argv[1], "grep") == 0;
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

    if (argc < 5 || count < 1) {
        (void)fprintf(stderr, "usage: search_holt grep|glob COUNT PATTERN DIRECTORY [FLAG...]\n");
        return 2;
    }
    _Static_assert((int)GREP_PATTERN == (int)GLOB_PATTERN && (int)GREP_PATH == (int)GLOB_PATH,
                   "both begin alike");
    set_text(&values.at[GREP_PATTERN], argv[3]);
    set_text(&values.at[GREP_PATH], argv[4]);
    (is_grep ? set_grep : set_glob)(&values, argv + 5);
    for (long i = 0; i < count; i++) {
        struct tool_reply reply = { .content = BUF_INIT(TOOL_CONTENT_MAX) };
        double start = now_us();

        (is_grep ? tool_grep : tool_glob)(&values, &reply);
        (void)printf("%.1f\n", now_us() - start);
        if (getenv("SEARCH_SHOW"))
            (void)fprintf(stderr, "%.*s\n", 200, reply.content.data);
        if (reply.outcome.flags & TOOL_IS_ERROR) {
            (void)fprintf(stderr, "%s\n", reply.content.data);
            return 1;
        }
        buf_done(&reply.content);
    }
    return 0;
}
