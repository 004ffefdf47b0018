// SPDX-License-Identifier: Apache-2.0
#include "image/challenge.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum { NAME_MAX_BYTES = 32, VALUE_MAX_BYTES = 1024 };

static const char *blanks_skip(const char *text)
{
    return text + strspn(text, " \t");
}

static bool token_char_is(char c)
{
    return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

/* Reads a token, at most size - 1 bytes. Returns what follows, or NULL. */
static const char *token_read(const char *text, char *ret, size_t size)
{
    size_t len = 0;

    while (token_char_is(text[len])) {
        if (len + 1 == size)
            return NULL;
        ret[len] = text[len];
        len++;
    }
    ret[len] = '\0';
    return len > 0 ? text + len : NULL;
}

/* Reads "..." with backslashes, or a token. Control characters are refused: the value becomes a
 * part of a URL. */
static const char *value_read(const char *text, char *ret, size_t size)
{
    size_t len = 0;

    if (*text != '"')
        return token_read(text, ret, size);
    for (text++; *text != '"'; text++) {
        if (*text == '\\')
            text++;
        if (*text == '\0' || iscntrl((unsigned char)*text) || len + 1 == size)
            return NULL;
        ret[len++] = *text;
    }
    ret[len] = '\0';
    return text + 1;
}

static bool param_set(struct challenge *challenge, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *field;
        size_t size;
    } fields[] = {
        { "realm", challenge->realm, sizeof(challenge->realm) },
        { "service", challenge->service, sizeof(challenge->service) },
        { "scope", challenge->scope, sizeof(challenge->scope) },
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (strcasecmp(name, fields[i].name) == 0)
            return snprintf(fields[i].field, fields[i].size, "%s", value) < (int)fields[i].size;
    }
    return true; /* of no interest */
}

/* Reads NAME=VALUE pairs up to the end or the next scheme. Returns what follows, or NULL. */
static const char *params_read(const char *text, struct challenge *challenge)
{
    char name[NAME_MAX_BYTES], value[VALUE_MAX_BYTES];

    for (;;) {
        const char *next;

        text = blanks_skip(text + strspn(text, ", \t"));
        if (*text == '\0')
            return text;
        next = token_read(text, name, sizeof(name));
        if (!next)
            return NULL;
        next = blanks_skip(next);
        if (*next != '=')
            return text; /* the next scheme */
        next = value_read(blanks_skip(next + 1), value, sizeof(value));
        if (!next || !param_set(challenge, name, value))
            return NULL;
        text = next;
    }
}

bool challenge_parse(const char *value, struct challenge *ret)
{
    char scheme[NAME_MAX_BYTES];

    while (value) {
        struct challenge challenge = { .realm = "" };

        value = token_read(value + strspn(value, ", \t"), scheme, sizeof(scheme));
        if (value)
            value = params_read(value, &challenge);
        if (!value)
            return false;
        challenge.is_bearer = strcasecmp(scheme, "Bearer") == 0;
        if ((challenge.is_bearer && challenge.realm[0]) || strcasecmp(scheme, "Basic") == 0) {
            *ret = challenge;
            return true;
        }
        if (*value == '\0')
            return false;
    }
    return false;
}
