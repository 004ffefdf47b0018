// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"

void call_set_word(const struct sandbox *sandbox, const char *word, struct err *err)
{
    char said[sizeof(err->msg)], id[SANDBOX_ID_MAX + 2];
    const char *at;

    (void)snprintf(id, sizeof(id), "'%s'", sandbox_id(sandbox));
    at = strstr(err->msg, id);
    if (!at || strlen(word) > SANDBOX_NAME_MAX)
        return;
    (void)snprintf(said, sizeof(said), "%.*s'%s'%s", (int)(at - err->msg), err->msg, word,
                   at + strlen(id));
    memcpy(err->msg, said, sizeof(err->msg));
}

int call_result(const struct call *call, int r, struct err *err)
{
    const char *word = json_string_value(json_object_get(call->message, "sandboxId"));
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    char quoted[SANDBOX_NAME_MAX + 3];
    struct err ignored;

    if (r >= 0 || !word || !strstr(err->msg, "'sb-"))
        return r;
    (void)snprintf(quoted, sizeof(quoted), "'%s'", word);
    if (strstr(err->msg, quoted) ||
        sandbox_find(call->host, call->caller, word, &sandbox, &ignored) < 0)
        return r;
    call_set_word(sandbox, word, err);
    return r;
}

int call_reply(const struct call *call, const struct schema *schema, const void *message,
               struct err *err)
{
    int r = schema_encode(schema, message, ENCODE_ALL, call->out);

    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}
