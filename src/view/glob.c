// SPDX-License-Identifier: Apache-2.0
#include "view/glob.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/text/utf8.h"

enum { FOREIGN_BYTE = 0x110000 }; /* behind the last character of Unicode */

/* Reads the character at the start of the text and returns its length. */
static size_t character_read(const char *text, size_t len, uint32_t *ret)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t size = utf8_char(text, len);

    if (size == 0) {
        *ret = FOREIGN_BYTE + (uint8_t)*text;
        return 1;
    }
    *ret = (uint8_t)*text & masks[size];
    for (size_t i = 1; i < size; i++)
        *ret = *ret << 6 | ((uint8_t)text[i] & 0x3f);
    return size;
}

struct glob_text {
    const char *at, *end;
};

/* Reads one character, of which a backslash takes its meaning. */
static int glob_read_char(struct glob_text *text, uint32_t *ret, struct err *err)
{
    if (*text->at == '\\' && ++text->at == text->end)
        return err_set(err, ERR_INVALID, "a pattern ends with a backslash");
    text->at += character_read(text->at, (size_t)(text->end - text->at), ret);
    return 0;
}

static int glob_read_range(struct glob_text *text, struct view_range *ret, struct err *err)
{
    int r;

    if (*text->at == '[')
        return err_set(err, ERR_INVALID, "a class in a pattern has '['; write \\[");
    r = glob_read_char(text, &ret->first, err);
    if (r < 0)
        return r;
    ret->last = ret->first;
    if (text->end - text->at < 2 || text->at[0] != '-' || text->at[1] == ']')
        return 0;
    text->at++;
    r = glob_read_char(text, &ret->last, err);
    if (r == 0 && ret->last < ret->first)
        r = err_set(err, ERR_INVALID, "a range in a pattern ends before it begins");
    return r;
}

/* Reads a class, of which the bracket was read. A "]" that comes first is a character of it. */
static int glob_read_class(struct glob_text *text, struct arena *arena, struct view_token *ret,
                           struct err *err)
{
    size_t room = (size_t)(text->end - text->at);
    struct view_range *ranges = arena_alloc(arena, room + 1, sizeof(*ranges));
    uint16_t count = 0;
    int r;

    if (!ranges)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    *ret = (struct view_token){ .kind = VIEW_TOKEN_CLASS, .ranges = ranges };
    if (room > 0 && (*text->at == '!' || *text->at == '^')) {
        ret->is_negated = true;
        text->at++;
    }
    while (text->at < text->end && (*text->at != ']' || count == 0)) {
        r = glob_read_range(text, &ranges[count++], err);
        if (r < 0)
            return r;
    }
    if (text->at == text->end)
        return err_set(err, ERR_INVALID, "a class in a pattern has no ']'");
    text->at++;
    ret->range_count = count;
    return 0;
}

static int glob_read_token(struct glob_text *text, struct arena *arena, struct view_token *ret,
                           struct err *err)
{
    *ret = (struct view_token){ .kind = VIEW_TOKEN_CHAR };
    switch (*text->at) {
    case '*':
        ret->kind = VIEW_TOKEN_STAR;
        break;
    case '?':
        ret->kind = VIEW_TOKEN_ONE;
        break;
    case '[':
        text->at++;
        return glob_read_class(text, arena, ret, err);
    default:
        return glob_read_char(text, &ret->character, err);
    }
    text->at++;
    return 0;
}

int view_glob_compile(const char *text, size_t len, struct arena *arena,
                      const struct view_token **ret, uint16_t *ret_count, struct err *err)
{
    struct view_token *tokens = arena_alloc(arena, len, sizeof(*tokens));
    struct glob_text rest = { text, text + len };
    uint16_t count = 0;
    int r;

    if (!tokens)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    while (rest.at < rest.end) {
        r = glob_read_token(&rest, arena, &tokens[count], err);
        if (r < 0)
            return r;
        if (count > 0 && tokens[count].kind == VIEW_TOKEN_STAR &&
            tokens[count - 1].kind == VIEW_TOKEN_STAR)
            return err_set(err, ERR_INVALID, "** must be a whole component of a pattern");
        count++;
    }
    *ret = tokens;
    *ret_count = count;
    return 0;
}

static bool token_matches(const struct view_token *token, uint32_t character)
{
    bool is_in = false;

    if (token->kind == VIEW_TOKEN_ONE)
        return true;
    if (token->kind == VIEW_TOKEN_CHAR)
        return token->character == character;
    for (size_t i = 0; i < token->range_count && !is_in; i++)
        is_in = character >= token->ranges[i].first && character <= token->ranges[i].last;
    return is_in != token->is_negated;
}

/* Only the last star is ever tried again: whatever an earlier one could take more, it can. */
bool view_glob_matches(const struct view_token *tokens, size_t count, const char *name, size_t len)
{
    size_t token = 0, at = 0, star = count, star_at = 0;
    uint32_t character;
    size_t size;

    while (at < len) {
        size = character_read(name + at, len - at, &character);
        if (token < count && tokens[token].kind == VIEW_TOKEN_STAR) {
            star = token++;
            star_at = at;
        } else if (token < count && token_matches(&tokens[token], character)) {
            token++;
            at += size;
        } else if (star < count) {
            token = star + 1;
            star_at += character_read(name + star_at, len - star_at, &character);
            at = star_at;
        } else {
            return false;
        }
    }
    while (token < count && tokens[token].kind == VIEW_TOKEN_STAR)
        token++;
    return token == count;
}
