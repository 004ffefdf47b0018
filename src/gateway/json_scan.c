// SPDX-License-Identifier: Apache-2.0
#include "gateway/json_scan.h"

#include <errno.h>
#include <string.h>

enum scan_state {
    SCAN_ROOT,       /* before the first brace */
    SCAN_VALUE,      /* a value must follow */
    SCAN_FIRST,      /* a value or the end of an array */
    SCAN_NAME_FIRST, /* a name or the end of an object */
    SCAN_NAME,
    SCAN_COLON,
    SCAN_NEXT, /* a comma or an end */
    SCAN_STRING,
    SCAN_OTHER, /* a number or a word */
    SCAN_DONE,
    SCAN_FAILED,
};

void json_scan_init(struct json_scan *scan, json_scan_fn *report, void *data)
{
    /* The texts are long and need no zeros. */
    memset(scan, 0, offsetof(struct json_scan, path));
    scan->report = report;
    scan->data = data;
    scan->text_len = 0;
    scan->path[0] = '\0';
}

bool json_scan_is_done(const struct json_scan *scan)
{
    return scan->state == SCAN_DONE;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns whether the members at this depth are reported. */
static bool scan_is_seen(const struct json_scan *scan)
{
    return scan->array_depth == 0 && scan->depth <= JSON_SCAN_LEVELS;
}

static bool scan_in_object(const struct json_scan *scan)
{
    unsigned level = scan->depth - 1;

    return scan->is_object[level / 8] >> (level % 8) & 1;
}

static int scan_open(struct json_scan *scan, bool is_object)
{
    unsigned level = scan->depth;

    if (level == JSON_SCAN_DEPTH_MAX)
        return -EBADMSG;
    if (is_object)
        scan->is_object[level / 8] |= (uint8_t)(1U << (level % 8));
    else
        scan->is_object[level / 8] &= (uint8_t) ~(1U << (level % 8));
    scan->depth++;
    if (!is_object && scan->array_depth == 0)
        scan->array_depth = scan->depth;
    if (level > 0 && level < JSON_SCAN_LEVELS && scan->array_depth == 0)
        scan->path_len[level] = strlen(scan->path);
    scan->state = is_object ? SCAN_NAME_FIRST : SCAN_FIRST;
    return 0;
}

static int scan_close(struct json_scan *scan, bool is_object)
{
    if (scan_in_object(scan) != is_object)
        return -EBADMSG;
    if (scan->array_depth == scan->depth)
        scan->array_depth = 0;
    scan->depth--;
    scan->state = scan->depth == 0 ? SCAN_DONE : SCAN_NEXT;
    return 0;
}

static void scan_begin(struct json_scan *scan, enum scan_state state, bool is_key)
{
    scan->state = state;
    scan->is_key = is_key;
    scan->has_escape = scan->is_escaped = false;
    scan->start = scan->offset;
    scan->text_len = 0;
}

static void text_add(struct json_scan *scan, char c)
{
    if (scan->text_len < sizeof(scan->text))
        scan->text[scan->text_len++] = c;
}

/* Ends the text and returns whether it was too long. */
static bool text_end(struct json_scan *scan)
{
    bool is_cut = scan->text_len == sizeof(scan->text);

    scan->text[scan->text_len - is_cut] = '\0';
    return is_cut;
}

/* Names of the root are plain ASCII in every format; parsers disagree about others, and about
 * control bytes. */
static bool name_is_plain(const char *name)
{
    for (; *name; name++)
        if (*name < ' ' || *name > '~')
            return false;
    return true;
}

/* Appends a name to the path of its object. A name that does not fit matches nothing. */
static void name_end(struct json_scan *scan)
{
    bool is_cut = text_end(scan);
    size_t base = scan->depth > 1 ? scan->path_len[scan->depth - 1] : 0, len = strlen(scan->text);
    bool is_odd = is_cut || scan->has_escape || base + len + 2 > sizeof(scan->path);

    scan->has_odd_name |=
        scan->depth == 1 && (is_odd || scan->text_len > len || !name_is_plain(scan->text));
    if (is_odd) {
        memcpy(scan->text, "?", 2);
        len = 1;
        base = base + len + 2 > sizeof(scan->path) ? 0 : base;
    }
    if (base > 0)
        scan->path[base++] = '.';
    memcpy(scan->path + base, scan->text, len + 1);
}

static void value_end(struct json_scan *scan, enum json_scan_kind kind, uint64_t end)
{
    struct json_scan_value value = { .path = scan->path,
                                     .kind = kind,
                                     .text = scan->text,
                                     .has_escape = scan->has_escape,
                                     .start = scan->start,
                                     .end = end };

    scan->state = SCAN_NEXT;
    if (!scan_is_seen(scan))
        return;
    value.is_cut = text_end(scan);
    scan->report(scan->data, &value);
}

static void string_take(struct json_scan *scan, char c)
{
    bool is_end = c == '"' && !scan->is_escaped;

    if (!is_end) {
        scan->has_escape |= c == '\\';
        scan->is_escaped = c == '\\' && !scan->is_escaped;
        text_add(scan, c);
    } else if (scan->is_key) {
        scan->state = SCAN_COLON;
        if (scan_is_seen(scan))
            name_end(scan);
    } else {
        value_end(scan, JSON_SCAN_STRING, scan->offset + 1);
    }
}

static int value_take(struct json_scan *scan, char c)
{
    if (c == '{' || c == '[')
        return scan_open(scan, c == '{');
    if (c == '"') {
        scan_begin(scan, SCAN_STRING, false);
        return 0;
    }
    if (c != '-' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z'))
        return -EBADMSG;
    scan_begin(scan, SCAN_OTHER, false);
    text_add(scan, c);
    return 0;
}

static int next_take(struct json_scan *scan, char c)
{
    if (c == '}' || c == ']')
        return scan_close(scan, c == '}');
    if (c != ',')
        return -EBADMSG;
    scan->state = scan_in_object(scan) ? SCAN_NAME : SCAN_VALUE;
    return 0;
}

static int other_take(struct json_scan *scan, char c)
{
    bool is_part = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '+' ||
                   c == '-' || c == 'E';

    if (is_part) {
        text_add(scan, c);
        return 0;
    }
    value_end(scan, JSON_SCAN_OTHER, scan->offset);
    return is_blank(c) ? 0 : next_take(scan, c);
}

static int name_take(struct json_scan *scan, char c)
{
    if (c == '}' && scan->state == SCAN_NAME_FIRST)
        return scan_close(scan, true);
    if (c != '"')
        return -EBADMSG;
    scan_begin(scan, SCAN_STRING, true);
    return 0;
}

static int colon_take(struct json_scan *scan, char c)
{
    scan->state = SCAN_VALUE;
    return c == ':' ? 0 : -EBADMSG;
}

static int scan_take(struct json_scan *scan, char c)
{
    enum scan_state state = scan->state;

    if (state == SCAN_STRING) {
        string_take(scan, c);
        return 0;
    }
    if (state == SCAN_OTHER)
        return other_take(scan, c);
    if (is_blank(c))
        return state == SCAN_FAILED ? -EBADMSG : 0;
    if (state == SCAN_ROOT)
        return c == '{' ? scan_open(scan, true) : -EBADMSG;
    if (state == SCAN_FIRST && c == ']')
        return scan_close(scan, false);
    if (state == SCAN_FIRST || state == SCAN_VALUE)
        return value_take(scan, c);
    if (state == SCAN_NAME_FIRST || state == SCAN_NAME)
        return name_take(scan, c);
    if (state == SCAN_COLON)
        return colon_take(scan, c);
    return state == SCAN_NEXT ? next_take(scan, c) : -EBADMSG; /* something after the end */
}

/* Most bytes are in long strings, whose text nobody needs: they are passed over at once. */
static size_t string_skip(struct json_scan *scan, const char *bytes, size_t len)
{
    size_t n = 0;

    if (scan->state != SCAN_STRING || scan->is_escaped ||
        (scan_is_seen(scan) && scan->text_len < sizeof(scan->text)))
        return 0;
    while (n < len && bytes[n] != '"' && bytes[n] != '\\')
        n++;
    scan->offset += n;
    return n;
}

int json_scan_feed(struct json_scan *scan, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        i += string_skip(scan, bytes + i, len - i);
        if (i == len)
            break;
        if (scan_take(scan, bytes[i]) < 0) {
            scan->state = SCAN_FAILED;
            return -EBADMSG;
        }
        scan->offset++;
    }
    return scan->state == SCAN_FAILED ? -EBADMSG : 0;
}
