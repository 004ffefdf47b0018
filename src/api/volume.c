// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "api/message/fields.h"
#include "api/named_volume.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "e2b/core/object_store.h"

static json_t *volume_json(const json_t *stored)
{
    return json_pack("{s:O, s:O}", "id", json_object_get(stored, "id"), "name",
                     json_object_get(stored, "name"));
}

static int reply_check(const json_t *reply, struct err *err)
{
    return reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int volume_service_create(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "name", NULL };
    cleanup_json json_t *stored = NULL;
    const char *name = NULL;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_needed(request, "name", &name, err);
    if (r == 0)
        r = named_volume_create(call->host, call->objects, name, &stored, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "volume", volume_json(stored));
    return reply_check(*ret_reply, err);
}

int volume_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    static const char *const fields[] = { NULL };
    cleanup_json json_t *all = NULL;
    int r = json_only_fields(request, fields, err);
    json_t *list, *stored;
    size_t index;

    if (r < 0)
        return r;
    all = e2b_objects_list(call->objects, OBJECTS_VOLUMES);
    list = json_array();
    json_array_foreach(all, index, stored)
    {
        (void)json_array_append_new(list, volume_json(stored));
    }
    *ret_reply = json_pack("{s:o}", "volumes", list);
    return reply_check(*ret_reply, err);
}

int volume_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "volume", NULL };
    const char *word = NULL;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = field_needed(request, "volume", &word, err);
    return r == 0 ? named_volume_remove(call->host, call->objects, word, err) : r;
}
