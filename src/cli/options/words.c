// SPDX-License-Identifier: Apache-2.0
#include "cli/options/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/xalloc.h"

void words_add(struct words *words, const char *text)
{
    char **items = xcalloc(words->count + 2, sizeof(*items));

    if (words->count > 0)
        memcpy(items, words->items, words->count * sizeof(*items));
    free(words->items);
    words->items = items;
    words->items[words->count++] = xstrdup(text);
}

int words_add_label(struct words *words, const char *text, struct err *err)
{
    if (!strchr(text, '=') || *text == '=')
        return err_set(err, ERR_INVALID, "--label '%.100s' is not KEY=VALUE", text);
    words_add(words, text);
    return 0;
}

/* A name has no colon, so the first one separates it from the path. */
int words_add_volume(struct words *words, const char *text, struct err *err)
{
    size_t len = strcspn(text, ":");

    if (len == 0 || !text[len] || text[len + 1] != '/')
        return err_set(err, ERR_INVALID,
                       "--volume '%.100s' is not NAME:PATH[:ro] like data:/mnt/data", text);
    words_add(words, text);
    return 0;
}

void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}
