// SPDX-License-Identifier: Apache-2.0
#include "tools/regex.h"

#include <errno.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/finder.h"
#include "tools/regex_scan.h"

enum {
    MATCH_STEPS_MAX = 10 * 1000 * 1000,
    MATCH_HEAP_KIB = 64 * 1024,
    STACK_BYTES = 32 * 1024,
    STACK_BYTES_MAX = 8 * 1024 * 1024,
    SHOWN_MAX = 200, /* of a pattern in an error */
};

struct regex {
    pcre2_code *code; /* NULL: the literal is all there is */
    bool has_literal;
    struct finder literal; /* in every line that matches */
    bool is_for_lines;
    bool has_newline;
};

struct regex_thread {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool is_for_lines; /* many at once were too many */
};

/* The pattern, and a mark below the place of the error. */
static void explain(struct buf *why, const char *pattern, size_t len, int error, size_t offset)
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
    (void)buf_add_str(why, "To search for the text itself, set literal to true; or put a backslash "
                           "before ( ) [ ] { } . * + ? ^ $ | \\.");
}

static int compile(struct regex *regex, const struct regex_scan *scan, const char *pattern,
                   size_t len, struct buf *why)
{
    const char *text = scan->is_for_lines ? pattern : scan->text.data;
    size_t text_len = scan->is_for_lines ? len : scan->text.len;
    uint32_t options = PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
                       (scan->ignore_case ? PCRE2_CASELESS : 0) |
                       (scan->needs_utf ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF : 0);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_SIZE offset = 0;
    int error = 0;

    if (context)
        (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    /* Errors are told about what was asked for, not about what became of it. */
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern, len, options | PCRE2_UTF, &error, &offset, context);
    if (!regex->code) {
        explain(why, pattern, len, error, offset);
    } else {
        pcre2_code_free(regex->code);
        regex->code = pcre2_compile((PCRE2_SPTR)text, text_len, options, &error, &offset, context);
        if (!regex->code)
            explain(why, pattern, len, error, offset);
    }
    pcre2_compile_context_free(context);
    if (!regex->code)
        return -EINVAL;
    /* Where memory cannot be made executable, matches are only slower. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return 0;
}

static struct regex *text_new(const char *pattern, size_t len, bool ignore_case)
{
    struct regex *regex = xcalloc(1, sizeof(*regex));

    finder_init(&regex->literal, pattern, len, ignore_case);
    regex->has_literal = true;
    return regex;
}

/* Every character that is not a letter or digit with a backslash before it. */
static int quote(struct buf *out, const char *text, size_t len)
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
    struct regex *regex;

    if (options->is_text && !ignore_case)
        return text_new(pattern, len, false);
    if (options->is_text) {
        if (quote(&quoted, pattern, len) < 0)
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
        return text_new(scan.literal.data, scan.literal.len, ignore_case);

    regex = xcalloc(1, sizeof(*regex));
    regex->is_for_lines = scan.is_for_lines;
    regex->has_newline = scan.has_newline;
    if (compile(regex, &scan, pattern, len, why) < 0) {
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

/* 1, 0 or -E2BIG. */
static int match(const struct regex *regex, struct regex_thread *thread, const char *start,
                 const char *end, const char **ret_place, size_t *ret_len)
{
    const PCRE2_SIZE *found;
    int r = pcre2_match(regex->code, (PCRE2_SPTR)start, (size_t)(end - start), 0, 0, thread->data,
                        thread->context);

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

/* One line after the other, or only those with the literal. */
static int find_in_lines(const struct regex *regex, struct regex_thread *thread, const char *start,
                         const char *end, const char **ret_place, size_t *ret_len)
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
        r = match(regex, thread, start, stop, ret_place, ret_len);
        if (r != 0)
            return r;
        start = stop + 1;
    }
    return 0;
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
    if (regex->has_literal || regex->is_for_lines || thread->is_for_lines)
        return find_in_lines(regex, thread, start, end, ret_place, ret_len);
    r = match(regex, thread, start, end, ret_place, ret_len);
    if (r < 0) {
        thread->is_for_lines = true;
        return find_in_lines(regex, thread, start, end, ret_place, ret_len);
    }
    if (r > 0 && *ret_place == end && end > start && end[-1] == '\n')
        return 0; /* behind the last line there is none */
    return r;
}
