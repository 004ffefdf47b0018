// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "git/control.h"

size_t git_message_fill(struct git_message *message, const char *const *texts, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        const size_t size = strlen(texts[i]) + 1;

        if (size > sizeof(message->text) - at)
            return 0;
        memcpy(message->text + at, texts[i], size);
        at += size;
    }
    return offsetof(struct git_message, text) + at;
}

int git_message_texts(const struct git_message *message, size_t len, const char **ret, size_t count)
{
    const char *at = message->text, *end = (const char *)message + len;

    if (len < offsetof(struct git_message, text))
        return -EBADMSG;
    for (size_t i = 0; i < count; i++) {
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (!nul)
            return -EBADMSG;
        ret[i] = at;
        at = nul + 1;
    }
    return 0;
}
