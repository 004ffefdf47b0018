// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/xalloc.h"
#include "host/process/process.h"

static size_t words_count(char *const *words)
{
    size_t count = 0;

    while (words && words[count])
        count++;
    return count;
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t words_size(char *const *words)
{
    size_t size = 0;

    for (; words && *words; words++)
        size += text_size(*words);
    return size;
}

static char *text_copy(char **room, const char *text)
{
    char *copy = *room;

    if (!text)
        return NULL;
    memcpy(copy, text, text_size(text));
    *room += text_size(text);
    return copy;
}

/* Copies a list to *slots, which has room for it and the terminating NULL. */
static char **words_copy(char ***slots, char **room, char *const *words)
{
    char **list = *slots;

    for (; words && *words; words++)
        *(*slots)++ = text_copy(room, *words);
    *(*slots)++ = NULL;
    return list;
}

struct process_spec *process_spec_copy(const struct process_spec *spec)
{
    size_t slots = words_count(spec->args) + words_count(spec->env) + 2;
    size_t bytes = words_size(spec->args) + words_size(spec->env) + text_size(spec->cwd) +
                   text_size(spec->tag) + text_size(spec->key) + text_size(spec->user) +
                   text_size(spec->group) + text_size(spec->tier);
    struct process_spec *copy = xcalloc(1, sizeof(*copy) + slots * sizeof(char *) + bytes);
    char **lists = (char **)(void *)(copy + 1);
    char *room = (char *)(lists + slots);

    *copy = *spec;
    copy->args = words_copy(&lists, &room, spec->args);
    copy->env = words_copy(&lists, &room, spec->env);
    copy->cwd = text_copy(&room, spec->cwd);
    copy->user = text_copy(&room, spec->user);
    copy->group = text_copy(&room, spec->group);
    copy->tag = text_copy(&room, spec->tag);
    copy->key = text_copy(&room, spec->key);
    copy->tier = text_copy(&room, spec->tier);
    return copy;
}
