// SPDX-License-Identifier: Apache-2.0
#include "tools/search/regex.h"

#include <errno.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "tools/search/finder.h"
#include "tools/search/regex_scan.h"
#include "wire/tool.h"

enum {
    MATCH_STEPS_MAX = 10 * 1000 * 1000,
    MATCH_HEAP_KIB = 64 * 1024,
    STACK_BYTES = 32 * 1024,
    STACK_BYTES_MAX = 8 * 1024 * 1024,
    SHOWN_MAX = 200, /* bytes of a pattern in an error message */
    COMPILED = 100,  /* error code of PCRE2 for success */
};

/* `code` is for valid UTF-8. Invalid bytes are not characters, so no pattern matches them; that
 * needs `for_bytes`, which is not JIT-compiled, because the JIT of PCRE2 10.42 handles \S, \W and
 * \D wrongly there. */
struct regex {
    pcre2_code *code;      /* NULL: the pattern is only the literal */
    pcre2_code *for_bytes; /* NULL: the expression does not depend on UTF-8 */
    bool has_literal;
    struct finder literal; /* occurs in every matching line */
    bool is_for_lines;
    bool has_newline;
};

struct regex_thread {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool is_hard;       /* a search of many lines at once exceeded the limit before */
    bool goes_by_lines; /* the current search is line by line */
    bool is_bytes;      /* the line is not UTF-8 */
};

/* Writes the error with the pattern and a mark below its position. */
static void regex_explain_error(struct buf *why, const char *pattern, size_t len, int error,
                                size_t offset)
{
    char message[128] = "";
    size_t column = 0;

    (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof(message));
    (void)buf_printf(why, "The pattern is not a valid regular expression: %s (at offset %zu).\n",
                     message, offset);
    if (len <= SHOWN_MAX) {
        for (size_t i = 0; i < offset && i < len; i++)
            column += (pattern[i] & 0xc0) != 0x80;
        (void)buf_printf(why, "  %.*s\n  %*s^\n", (int)len, pattern, (int)column, "");
    }
    (void)buf_add_str(why, "To search for a plain string, set literal to true, or put a backslash "
                           "before ( ) [ ] { } . * + ? ^ $ | \\.");
}

static int regex_compile(struct regex *regex, const struct regex_scan *scan,
                         const struct tool_text *given, struct buf *why)
{
    bool is_changed = !scan->is_for_lines;
    PCRE2_SPTR text = (PCRE2_SPTR)(is_changed ? scan->text.data : given->data);
    size_t len = is_changed ? scan->text.len : given->len;
    uint32_t options =
        PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | (scan->ignore_case ? PCRE2_CASELESS : 0);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_SIZE offset = 0;
    int error = 0;

    if (!context)
        abort();
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    /* Compiled first, so that errors refer to the pattern as it was given. */
    regex->for_bytes =
        pcre2_compile((PCRE2_SPTR)given->data, given->len,
                      options | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &offset, context);
    if (regex->for_bytes && !scan->needs_utf) {
        pcre2_code_free(regex->for_bytes);
        regex->for_bytes = NULL;
    } else if (regex->for_bytes) {
        options |= PCRE2_UTF;
    }
    if (error == COMPILED)
        regex->code = pcre2_compile(text, len, options, &error, &offset, context);
    pcre2_compile_context_free(context);
    if (!regex->code) {
        regex_explain_error(why, given->data, given->len, error, offset);
        return -EINVAL;
    }
    /* Without JIT, matching is only slower. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return 0;
}

static struct regex *regex_new_text(const char *pattern, size_t len, bool ignore_case)
{
    struct regex *regex = xcalloc(1, sizeof(*regex));

    finder_init(&regex->literal, pattern, len, ignore_case);
    regex->has_literal = true;
    return regex;
}

/* Escapes every character that is not a letter or digit. */
static int regex_quote(struct buf *out, const char *text, size_t len)
{
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
                        ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

        if (c == '\0')
            r = buf_add_str(out, "\\x00");
        else if (is_plain || (r = buf_add_str(out, "\\")) == 0)
            r = buf_add(out, &text[i], 1);
    }
    return r;
}

struct regex *regex_new(const char *pattern, size_t len, const struct regex_options *options,
                        struct buf *why)
{
    cleanup_with(buf_done) struct buf quoted = BUF_INIT(len * 4);
    cleanup_with(regex_scan_done) struct regex_scan scan = { 0 };
    bool ignore_case = options->ignore_case;
    struct tool_text given;
    struct regex *regex;

    if (options->is_text && !ignore_case)
        return regex_new_text(pattern, len, false);
    if (options->is_text) {
        if (regex_quote(&quoted, pattern, len) < 0)
            return NULL;
        pattern = quoted.data;
        len = quoted.len;
    } else if (len > 4 && memcmp(pattern, "(?i)", 4) == 0) {
        ignore_case = true;
        pattern += 4;
        len -= 4;
    }
    if (regex_scan(&scan, pattern, len, ignore_case) < 0) {
        (void)buf_add_str(why, "The pattern is too long.");
        return NULL;
    }
    if (scan.is_literal)
        return regex_new_text(scan.literal.data, scan.literal.len, ignore_case);

    regex = xcalloc(1, sizeof(*regex));
    regex->is_for_lines = scan.is_for_lines;
    regex->has_newline = scan.has_newline;
    given = (struct tool_text){ .data = pattern, .len = len };
    if (regex_compile(regex, &scan, &given, why) < 0) {
        regex_free(regex);
        return NULL;
    }
    regex->has_literal = scan.literal.len > 0;
    if (regex->has_literal)
        finder_init(&regex->literal, scan.literal.data, scan.literal.len, ignore_case);
    return regex;
}

void regex_free(struct regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->for_bytes);
    finder_done(&regex->literal);
    free(regex);
}

bool regex_has_newline(const struct regex *regex)
{
    return regex->has_newline;
}

struct regex_thread *regex_thread_new(const struct regex *regex)
{
    struct regex_thread *thread = xcalloc(1, sizeof(*thread));

    if (!regex->code)
        return thread;
    thread->data = pcre2_match_data_create(1, NULL);
    thread->context = pcre2_match_context_create(NULL);
    thread->stack = pcre2_jit_stack_create(STACK_BYTES, STACK_BYTES_MAX, NULL);
    if (!thread->data || !thread->context)
        abort();
    (void)pcre2_set_match_limit(thread->context, MATCH_STEPS_MAX);
    (void)pcre2_set_heap_limit(thread->context, MATCH_HEAP_KIB);
    if (thread->stack)
        pcre2_jit_stack_assign(thread->context, NULL, thread->stack);
    return thread;
}

void regex_thread_free(struct regex_thread *thread)
{
    if (!thread)
        return;
    pcre2_match_data_free(thread->data);
    pcre2_match_context_free(thread->context);
    pcre2_jit_stack_free(thread->stack);
    free(thread);
}

/* Tests 32 bytes of ASCII at a time, other text by characters. */
static bool is_utf8(const char *at, const char *end)
{
    while (at < end) {
        uint64_t words[4];
        size_t size;

        if (end - at >= (ptrdiff_t)sizeof(words)) {
            memcpy(words, at, sizeof(words));
            if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ULL) == 0) {
                at += sizeof(words);
                continue;
            }
        }
        size = (unsigned char)*at < 0x80 ? 1 : utf8_char(at, (size_t)(end - at));
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

/* Returns 1, 0 or -E2BIG. */
static int regex_match(const struct regex *regex, struct regex_thread *thread, const char *start,
                       const char *end, const char **ret_place, size_t *ret_len)
{
    const pcre2_code *code = thread->is_bytes ? regex->for_bytes : regex->code;
    const PCRE2_SIZE *found;
    int r = pcre2_match(code, (PCRE2_SPTR)start, (size_t)(end - start), 0,
                        thread->is_bytes ? 0 : PCRE2_NO_UTF_CHECK, thread->data, thread->context);

    *ret_place = start;
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    if (r < 0)
        return -E2BIG;
    found = pcre2_get_ovector_pointer(thread->data);
    *ret_place = start + found[0];
    *ret_len = found[1] > found[0] ? found[1] - found[0] : 0;
    return 1;
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));

    return newline ? newline : end;
}

static const char *line_start(const char *start, const char *at)
{
    const char *newline = memrchr(start, '\n', (size_t)(at - start));

    return newline ? newline + 1 : start;
}

/* Searches line by line; if there is a literal, only lines that contain it. */
static int regex_find_in_lines(const struct regex *regex, struct regex_thread *thread,
                               const char *start, const char *end, const char **ret_place,
                               size_t *ret_len)
{
    while (start < end) {
        const char *stop;
        int r;

        if (regex->has_literal) {
            const char *place = finder_find(&regex->literal, start, end);

            if (!place)
                return 0;
            start = line_start(start, place);
        }
        stop = line_end(start, end);
        thread->is_bytes = regex->for_bytes && !is_utf8(start, stop);
        r = regex_match(regex, thread, start, stop, ret_place, ret_len);
        if (r != 0)
            return r;
        start = stop + 1;
    }
    return 0;
}

void regex_begin(const struct regex *regex, struct regex_thread *thread, const char *start,
                 const char *end)
{
    thread->goes_by_lines = regex->has_literal || regex->is_for_lines || thread->is_hard ||
                            (regex->for_bytes && !is_utf8(start, end));
}

int regex_find(const struct regex *regex, struct regex_thread *thread, const char *start,
               const char *end, const char **ret_place, size_t *ret_len)
{
    int r;

    if (!regex->code) {
        *ret_place = finder_find(&regex->literal, start, end);
        *ret_len = regex->literal.len;
        return *ret_place != NULL;
    }
    if (thread->goes_by_lines)
        return regex_find_in_lines(regex, thread, start, end, ret_place, ret_len);
    thread->is_bytes = false;
    r = regex_match(regex, thread, start, end, ret_place, ret_len);
    if (r < 0) {
        thread->goes_by_lines = thread->is_hard = true;
        return regex_find_in_lines(regex, thread, start, end, ret_place, ret_len);
    }
    if (r > 0 && *ret_place == end && end > start && end[-1] == '\n')
        return 0; /* after the last newline there is no line */
    return r;
}
