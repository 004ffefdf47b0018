// SPDX-License-Identifier: Apache-2.0
#include "host/secret/owned_secret.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/core/share.h"
#include "host/net/net.h"
#include "host/observe/event.h"
#include "host/secret/grant.h"

static void event_send(struct host *host, enum event_type type, const struct secret_info *info)
{
    owner_event(host, info->owner, type,
                json_pack("{s:s, s:s}", "secret", info->id, "name", info->name));
}

static int secret_put(struct host *host, const struct secret_change *change, enum event_type type,
                      struct secret_info *ret, struct err *err)
{
    int r = secrets_put(host->secrets, change, ret, err);

    if (r < 0)
        return r;
    event_send(host, type, ret);
    secret_grants_apply(host);
    net_keys_changed(host->net);
    fault_point("secret.applied");
    return 0;
}

int owned_secret_set(struct host *host, const struct caller *caller,
                     const struct owned_secret_value *value, const struct secret_request *request,
                     struct secret_info *ret, struct err *err)
{
    struct secret_use use;
    int r = caller_check_labels(caller, NULL, 0, err); /* secrets have no labels */

    if (r == 0)
        r = secret_check_name(value->name, err);
    if (r == 0)
        r = secret_use_init(value->name, request, &use, err);
    if (r < 0)
        return r;
    return secret_put(
        host, &(struct secret_change){ caller->owner, value->name, &use, value->value, value->len },
        EVENT_SECRET_SET, ret, err);
}

int owned_secret_rotate(struct host *host, const struct caller *caller,
                        const struct owned_secret_value *value, struct secret_info *ret,
                        struct err *err)
{
    struct secret_info info;
    int r = owned_secret_find(host, caller, value->name, &info, err);

    if (r < 0)
        return r;
    return secret_put(
        host, &(struct secret_change){ info.owner, info.name, NULL, value->value, value->len },
        EVENT_SECRET_ROTATED, ret, err);
}

static int secret_not_found(const char *word, struct err *err)
{
    (void)err_set(err, ERR_NOT_FOUND, "no secret '%.80s'", word);
    return err_remedy(err, "see 'holt secret ls', or set it with 'holt secret set'");
}

int owned_secret_find(struct host *host, const struct caller *caller, const char *word,
                      struct secret_info *ret, struct err *err)
{
    struct share_word split;
    struct err ignored;

    if (secrets_get(host->secrets, word, ret, &ignored) != 0 &&
        (!share_word_split(word, caller, &split) ||
         secrets_find(host->secrets, split.owner, split.name, ret, &ignored) != 0))
        return secret_not_found(word, err);
    return caller_sees(caller, ret->owner, NULL, 0) ? 0 : secret_not_found(word, err);
}

int owned_secret_list(struct host *host, const struct caller *caller, struct secret_info **ret,
                      size_t *ret_count, struct err *err)
{
    struct secret_info *list = NULL;
    size_t count = 0, kept = 0;
    int r = secrets_list(host->secrets, NULL, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (caller_sees(caller, list[i].owner, NULL, 0))
            list[kept++] = list[i];
    *ret = list;
    *ret_count = kept;
    return 0;
}

int owned_secret_remove(struct host *host, const struct caller *caller, const char *word,
                        struct err *err)
{
    struct secret_info info;
    int r = owned_secret_find(host, caller, word, &info, err);

    if (r < 0)
        return r;
    event_send(host, EVENT_SECRET_REMOVED, &info); /* before the row goes, as in destroy.c */
    r = secrets_remove(host->secrets, info.id, err);
    if (r == 0) {
        secret_grants_apply(host);
        net_keys_changed(host->net);
    }
    return r;
}
