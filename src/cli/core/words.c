// SPDX-License-Identifier: Apache-2.0
#include "cli/core/words.h"

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

void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}
