// SPDX-License-Identifier: Apache-2.0
#include "host/core/share.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event.h"

bool share_word_split(const char *word, const struct caller *caller, struct share_word *ret)
{
    const char *slash = strchr(word, '/');
    size_t len = slash ? (size_t)(slash - word) : 0;

    *ret = (struct share_word){ .has_owner = slash, .name = slash ? slash + 1 : word };
    if (len > OWNER_NAME_MAX || (slash && len == 0) || strchr(ret->name, '/') || !*ret->name)
        return false;
    if (slash)
        (void)snprintf(ret->owner, sizeof(ret->owner), "%.*s", (int)len, word);
    else
        (void)snprintf(ret->owner, sizeof(ret->owner), "%s", caller->owner);
    return true;
}

int share_reaches(struct host *host, enum share_kind kind, const char *object,
                  const struct caller *caller, struct err *err)
{
    if (caller->role == ROLE_NONE)
        return 0;
    return registry_has_share(host->registry, kind, object,
                              caller->scope_count == 0 ? caller->owner : SHARE_ALL, err);
}

/* Returns whether the list has this owner already. */
static bool list_has(const struct share *list, size_t count, const char *owner)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].owner, owner) == 0)
            return true;
    return false;
}

/* Lists the owners once each, without the object's own. The caller frees the array. */
static int list_make(const struct share_object *object, const struct sharing *sharing,
                     struct share **ret, size_t *ret_count, struct err *err)
{
    cleanup_free struct share *list = xcalloc(sharing->owner_count + 1, sizeof(*list));
    size_t count = 0;

    if (sharing->is_public && sharing->owner_count > 0)
        return err_set(err, ERR_INVALID, "share with owners or with all, not both");
    if (sharing->owner_count > SHARES_MAX)
        return err_set(err, ERR_INVALID, "share with at most %d owners", SHARES_MAX);
    if (sharing->is_public)
        (void)snprintf(list[count++].owner, sizeof(list->owner), "%s", SHARE_ALL);
    for (size_t i = 0; i < sharing->owner_count; i++) {
        const char *owner = sharing->owners[i];
        int r = owner_check_name(owner, err);

        if (r < 0)
            return r;
        if (strcmp(owner, object->owner) != 0 && !list_has(list, count, owner))
            (void)snprintf(list[count++].owner, sizeof(list->owner), "%s", owner);
    }
    *ret_count = count;
    *ret = TAKE_PTR(list);
    return 0;
}

/* Sent before the change: a share that nobody can find in the audit log would be worse than a line
 * for one that a crash prevented. */
static void event_send(struct host *host, const struct share_object *object,
                       const struct share *list, size_t count)
{
    bool is_template = object->kind == SHARE_TEMPLATE;
    json_t *with = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(with, json_string(list[i].owner));
    owner_event(host, object->owner, is_template ? EVENT_TEMPLATE_SHARED : EVENT_VOLUME_SHARED,
                json_pack("{s:s, s:s, s:o}", is_template ? "template" : "volume", object->id,
                          "name", object->name, "with", with));
}

int share_set(struct host *host, const struct share_object *object, const struct sharing *sharing,
              struct err *err)
{
    cleanup_free struct share *list = NULL;
    size_t count = 0;
    int r = list_make(object, sharing, &list, &count, err);

    if (r < 0)
        return r;
    event_send(host, object, list, count);
    fault_point("share.told");
    r = registry_put_shares(host->registry, object->kind, object->id, list, count, err);
    fault_point("share.recorded");
    return r;
}
