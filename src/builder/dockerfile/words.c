// SPDX-License-Identifier: Apache-2.0
#include "builder/dockerfile/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"

#define BLANKS " \t\n"

enum { WORD_BYTES_MAX = 256 * 1024, DEPTH_MAX = 16, NAME_BYTES_MAX = 256 };

/* --- split ------------------------------------------------------------------------------------ */

char word_quote(char quote, char c)
{
    bool is_quote = quote ? quote == c : c == '"' || c == '\'';

    if (!is_quote)
        return quote;
    if (quote)
        return '\0';
    return c;
}

/* Returns the length of the first word of a text. */
static size_t word_len(const char *text, char escape)
{
    char quote = '\0';
    size_t len = 0;

    while (text[len] && (quote || !strchr(BLANKS, text[len]))) {
        if (text[len] == escape && quote != '\'' && text[len + 1])
            len++;
        else
            quote = word_quote(quote, text[len]);
        len++;
    }
    return len;
}

int words_split(const char *text, char escape, char ***ret, struct err *err)
{
    char **words = xcalloc(1, sizeof(*words));
    size_t count = 0;

    for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS)) {
        size_t len = word_len(text, escape);

        if (count == WORDS_MAX) {
            words_free(&words);
            return err_set(err, ERR_INVALID, "more than %d words", WORDS_MAX);
        }
        words = xreallocarray(words, count + 2, sizeof(*words));
        words[count++] = xasprintf("%.*s", (int)len, text);
        words[count] = NULL;
        text += len;
    }
    *ret = words;
    return 0;
}

void words_free(char ***words)
{
    for (char **word = *words; word && *word; word++)
        free(*word);
    free(*words);
    *words = NULL;
}

/* --- expand ----------------------------------------------------------------------------------- */

struct expander {
    const struct scope *scope;
    struct buf out;
    struct err *err;
};

static const char *variable_find(const struct scope *scope, const char *name)
{
    const char *value = json_string_value(json_object_get(scope->env, name));

    return value ? value : json_string_value(json_object_get(scope->args, name));
}

static int text_add(struct expander *expander, const char *text, size_t len)
{
    if (buf_add(&expander->out, text, len) == 0)
        return 0;
    return err_set(expander->err, ERR_INVALID, "a word has more than %d bytes", WORD_BYTES_MAX);
}

static size_t name_len(const char *text)
{
    size_t len = 0;

    if (isdigit((unsigned char)*text))
        return 1;
    while (isalnum((unsigned char)text[len]) || text[len] == '_')
        len++;
    return len;
}

static int part_expand(struct expander *expander, const char *text, size_t len, int depth);

/* Returns the length of what stands in braces, without the closing one; -1: there is none. */
static ssize_t braces_len(const char *text, size_t len, char escape)
{
    int depth = 1;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == escape)
            i++;
        else if (text[i] == '{')
            depth++;
        else if (text[i] == '}' && --depth == 0)
            return (ssize_t)i;
    }
    return -1;
}

/* Expands NAME, NAME:-word or NAME:+word. */
static int braces_expand(struct expander *expander, const char *text, size_t len, int depth)
{
    char name[NAME_BYTES_MAX];
    size_t name_bytes = name_len(text);
    const char *value, *rest = text + name_bytes;
    size_t rest_len = len - name_bytes;

    if (name_bytes == 0 || name_bytes >= sizeof(name) || name_bytes > len)
        return err_set(expander->err, ERR_INVALID, "'${%.40s' names no variable", text);
    memcpy(name, text, name_bytes);
    name[name_bytes] = '\0';
    value = variable_find(expander->scope, name);
    if (rest_len == 0)
        return value ? text_add(expander, value, strlen(value)) : 0;
    if (rest_len < 2 || rest[0] != ':' || !strchr("-+", rest[1]))
        return err_set(expander->err, ERR_INVALID,
                       "'${%.40s' is neither ${NAME}, ${NAME:-word} nor ${NAME:+word}", text);
    if (rest[1] == '+')
        return value && *value ? part_expand(expander, rest + 2, rest_len - 2, depth + 1) : 0;
    return value && *value ? text_add(expander, value, strlen(value))
                           : part_expand(expander, rest + 2, rest_len - 2, depth + 1);
}

/* Expands what begins with '$'. Stores how many bytes that were. */
static int variable_expand(struct expander *expander, const char *text, size_t len, int depth,
                           size_t *ret_used)
{
    size_t name_bytes = len > 1 ? name_len(text + 1) : 0;
    ssize_t inner;

    if (len > 1 && text[1] == '{') {
        inner = braces_len(text + 2, len - 2, expander->scope->escape);
        if (inner < 0)
            return err_set(expander->err, ERR_INVALID, "'%.40s' has no closing brace", text);
        *ret_used = (size_t)inner + 3;
        return braces_expand(expander, text + 2, (size_t)inner, depth);
    }
    if (name_bytes > len - 1)
        name_bytes = len - 1;
    *ret_used = 1 + name_bytes;
    return name_bytes == 0 ? text_add(expander, "$", 1)
                           : braces_expand(expander, text + 1, name_bytes, depth);
}

/* Expands a part of a word. */
static int part_expand(struct expander *expander, const char *text, size_t len, int depth)
{
    char quote = '\0', escape = expander->scope->escape;
    size_t used;
    int r =
        depth > DEPTH_MAX ? err_set(expander->err, ERR_INVALID, "braces are nested too deep") : 0;

    for (size_t i = 0; r == 0 && i < len; i += used) {
        char c = text[i];

        used = 1;
        if (word_quote(quote, c) != quote) {
            quote = word_quote(quote, c);
        } else if (c == escape && quote != '\'' && i + 1 < len) {
            bool keeps = quote && !strchr("\"$", text[i + 1]) && text[i + 1] != escape;

            used = 2;
            r = text_add(expander, text + i + !keeps, keeps ? 2 : 1);
        } else if (c == '$' && quote != '\'') {
            r = variable_expand(expander, text + i, len - i, depth, &used);
        } else {
            r = text_add(expander, &c, 1);
        }
    }
    return r;
}

int word_expand(const char *word, const struct scope *scope, char **ret, struct err *err)
{
    struct expander expander = { .scope = scope, .out = BUF_INIT(WORD_BYTES_MAX), .err = err };
    int r = part_expand(&expander, word, strlen(word), 0);

    if (r == 0)
        *ret = xstrdup(expander.out.data ? expander.out.data : "");
    buf_done(&expander.out);
    return r;
}

int words_expand(const char *text, const struct scope *scope, char ***ret, struct err *err)
{
    char **words = NULL;
    int r = words_split(text, scope->escape, &words, err);

    for (char **word = words; r == 0 && *word; word++) {
        char *expanded = NULL;

        r = word_expand(*word, scope, &expanded, err);
        if (r == 0) {
            free(*word);
            *word = expanded;
        }
    }
    if (r < 0)
        words_free(&words);
    else
        *ret = words;
    return r;
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *words_json(const char *text)
{
    json_t *array = *text == '[' ? json_loads(text, 0, NULL) : NULL;

    if (!json_is_array(array)) {
        json_decref(array);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_string(json_array_get(array, i))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}
