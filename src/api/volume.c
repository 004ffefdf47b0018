// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "api/message/fields.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/volume/named_volume.h"

static json_t *volume_json(const struct volume_info *info)
{
    return json_pack("{s:s, s:s}", "id", info->id, "name", info->name);
}

static int reply_check(const json_t *reply, struct err *err)
{
    return reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int volume_service_create(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "name", NULL };
    struct volume_info info;
    const char *name = NULL;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_needed(request, "name", &name, err);
    if (r == 0)
        r = named_volume_create(call->host, name, &info, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "volume", volume_json(&info));
    return reply_check(*ret_reply, err);
}

int volume_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    static const char *const fields[] = { NULL };
    cleanup_free struct volume_info *infos = NULL;
    size_t count = 0;
    json_t *list;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = named_volume_list(call->host, &infos, &count, err);
    if (r < 0)
        return r;
    list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, volume_json(&infos[i]));
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
    return r == 0 ? named_volume_remove(call->host, word, err) : r;
}
