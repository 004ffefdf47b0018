// SPDX-License-Identifier: Apache-2.0
/* The first line is a pattern, the others are searched: the result must be the lines that PCRE2
 * matches one at a time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "tools/search/regex.h"

enum { STEPS_MAX = 10000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns 1 if the line matches, 0 if not, or a negative number after too many steps. */
static int line_matches(const pcre2_code *code, const char *line, size_t len)
{
    pcre2_match_data *found = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    int r;

    (void)pcre2_set_match_limit(context, STEPS_MAX);
    r = pcre2_match(code, (PCRE2_SPTR)line, len, 0, 0, found, context);
    pcre2_match_context_free(context);
    pcre2_match_data_free(found);
    return r >= 0 ? 1 : r == PCRE2_ERROR_NOMATCH ? 0 : r;
}

/* Checks that the search finds exactly the matching lines. */
static void compare(const struct regex *regex, const pcre2_code *code, const char *at,
                    const char *end)
{
    struct regex_thread *thread = regex_thread_new(regex);
    const char *next = at;

    regex_begin(regex, thread, at, end);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline + 1 : end, *place = NULL;
        size_t len = 0;
        int wanted = line_matches(code, at, (size_t)((newline ? newline : end) - at));

        if (wanted < 0)
            break;
        if (at >= next) {
            int r = regex_find(regex, thread, at, end, &place, &len);

            if (r < 0)
                break;
            next = r > 0 ? place : end + 1;
        }
        if ((next <= end && next < stop) != (wanted == 1) &&
            !(next == end && stop == end && wanted))
            abort();
        at = stop;
        if (wanted == 1)
            next = at;
    }
    regex_thread_free(thread);
}

static void search(const char *pattern, size_t len, bool ignore_case, const char *at,
                   const char *end)
{
    cleanup_with(buf_done) struct buf why = BUF_INIT(1 << 20);
    struct regex_options options = { .ignore_case = ignore_case };
    struct regex *regex = regex_new(pattern, len, &options, &why);
    PCRE2_SIZE offset;
    int error;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, len,
                      PCRE2_MULTILINE | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF |
                          PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0),
                      &error, &offset, NULL);

    if (!regex != !code && why.len == 0)
        abort();
    if (regex && code)
        compare(regex, code, at, end);
    pcre2_code_free(code);
    regex_free(regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *newline = size > 0 ? memchr(text, '\n', size) : NULL;

    if (!newline || newline == text || newline - text > 64 || size > 4096 ||
        utf8_valid(text, size) < size)
        return 0; /* parameters are UTF-8; PCRE2 treats other bytes differently */
    search(text, (size_t)(newline - text), false, newline + 1, text + size);
    search(text, (size_t)(newline - text), true, newline + 1, text + size);
    return 0;
}
