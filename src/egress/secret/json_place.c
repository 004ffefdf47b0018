// SPDX-License-Identifier: Apache-2.0
#include "egress/secret/json_place.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 64, KEY_MAX = 256, LITERAL_MAX = 64 };

struct place_reader {
    const char *text, *at, *end;
    unsigned depth;
    bool is_found;
    size_t found_at, found_len;
};

static void blanks_skip(struct place_reader *reader)
{
    while (reader->at < reader->end && *reader->at && strchr(" \t\r\n", *reader->at))
        reader->at++;
}

/* Reads a string and gives what is between its quotes, as written. */
static int string_read(struct place_reader *reader, const char **ret, size_t *ret_len)
{
    const char *start = ++reader->at;

    for (; reader->at < reader->end; reader->at++) {
        if ((unsigned char)*reader->at < ' ')
            return -EBADMSG;
        if (*reader->at == '\\') {
            if (++reader->at == reader->end || !strchr("\"\\/bfnrtu", *reader->at) || !*reader->at)
                return -EBADMSG;
        } else if (*reader->at == '"') {
            *ret = start;
            *ret_len = (size_t)(reader->at++ - start);
            return 0;
        }
    }
    return -EBADMSG;
}

/* Takes the next part of the pointer, with ~1 and ~0 read. Returns what is behind it, or NULL. */
static const char *part_take(const char *pointer, char key[KEY_MAX])
{
    size_t len = 0;

    for (pointer++; *pointer && *pointer != '/'; pointer++) {
        char c = *pointer;

        if (len == KEY_MAX - 1)
            return NULL;
        if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
            c = *++pointer == '0' ? '~' : '/';
        key[len++] = c;
    }
    key[len] = '\0';
    return pointer;
}

static int value_read(struct place_reader *reader, const char *pointer);

/* Reads "key": value up to the end of the object. `rest` is NULL off the way. */
static int members_read(struct place_reader *reader, const char *key, const char *rest)
{
    bool was_seen = false;

    for (;;) {
        const char *name;
        size_t len;
        bool is_way;

        blanks_skip(reader);
        if (reader->at == reader->end || *reader->at != '"' || string_read(reader, &name, &len) < 0)
            return -EBADMSG;
        is_way = rest && len == strlen(key) && memcmp(name, key, len) == 0;
        if (is_way && was_seen)
            return -EBADMSG;
        was_seen = was_seen || is_way;
        blanks_skip(reader);
        if (reader->at == reader->end || *reader->at++ != ':' ||
            value_read(reader, is_way ? rest : NULL) < 0)
            return -EBADMSG;
        blanks_skip(reader);
        if (reader->at == reader->end)
            return -EBADMSG;
        if (*reader->at == '}') {
            reader->at++;
            return 0;
        }
        if (*reader->at++ != ',')
            return -EBADMSG;
    }
}

static int elements_read(struct place_reader *reader, const char *key, const char *rest)
{
    for (size_t i = 0;; i++) {
        size_t number = 0;
        bool is_way = rest && *key && strspn(key, "0123456789") == strlen(key) && strlen(key) < 7;

        for (const char *c = key; is_way && *c; c++)
            number = number * 10 + (size_t)(*c - '0');
        if (value_read(reader, is_way && number == i ? rest : NULL) < 0)
            return -EBADMSG;
        blanks_skip(reader);
        if (reader->at == reader->end)
            return -EBADMSG;
        if (*reader->at == ']') {
            reader->at++;
            return 0;
        }
        if (*reader->at++ != ',')
            return -EBADMSG;
    }
}

static int nested_read(struct place_reader *reader, const char *pointer)
{
    bool is_object = *reader->at++ == '{';
    char key[KEY_MAX] = "";
    const char *rest = pointer && *pointer ? part_take(pointer, key) : NULL;
    int r;

    if (++reader->depth > DEPTH_MAX)
        return -EBADMSG;
    blanks_skip(reader);
    if (reader->at < reader->end && *reader->at == (is_object ? '}' : ']')) {
        reader->at++;
        r = 0;
    } else {
        r = is_object ? members_read(reader, key, rest) : elements_read(reader, key, rest);
    }
    reader->depth--;
    return r;
}

/* Numbers and words are skipped: what they are does not matter here. */
static int literal_read(struct place_reader *reader)
{
    const char *start = reader->at;

    while (reader->at < reader->end && *reader->at &&
           (strchr("+-.", *reader->at) || (*reader->at >= '0' && *reader->at <= '9') ||
            (*reader->at >= 'a' && *reader->at <= 'z') || *reader->at == 'E'))
        reader->at++;
    return reader->at > start && reader->at - start <= LITERAL_MAX ? 0 : -EBADMSG;
}

/* `pointer` is what is left of it on the way, NULL elsewhere. */
static int value_read(struct place_reader *reader, const char *pointer)
{
    const char *text;
    size_t len;

    blanks_skip(reader);
    if (reader->at == reader->end)
        return -EBADMSG;
    if (*reader->at == '{' || *reader->at == '[')
        return nested_read(reader, pointer);
    if (*reader->at != '"')
        return literal_read(reader);
    if (string_read(reader, &text, &len) < 0)
        return -EBADMSG;
    if (pointer && !*pointer) {
        reader->is_found = true;
        reader->found_at = (size_t)(text - reader->text);
        reader->found_len = len;
    }
    return 0;
}

int json_place_find(const char *text, size_t len, const char *pointer, size_t *ret_at,
                    size_t *ret_len)
{
    struct place_reader reader = { .text = text, .at = text, .end = text + len };

    if (value_read(&reader, pointer) < 0)
        return -EBADMSG;
    blanks_skip(&reader);
    if (reader.at != reader.end)
        return -EBADMSG;
    *ret_at = reader.found_at;
    *ret_len = reader.found_len;
    return reader.is_found;
}
