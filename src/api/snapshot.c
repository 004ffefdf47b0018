// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "api/message/fields.h"
#include "api/message/messages.h"
#include "api/message/sandbox_ref.h"
#include "api/message/sandbox_request.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/sandbox/sandbox.h"

static int reply(const struct snapshot_info *info, json_t **ret_reply, struct err *err)
{
    *ret_reply = json_pack("{s:o}", "snapshot", snapshot_json(info));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int snapshot_service_turn_complete(const struct call *call, const json_t *request,
                                   json_t **ret_reply, struct err *err)
{
    static const char *const fields[] = { "sandboxId", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct snapshot_info info = { 0 };
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = sandbox_turn(sandbox, &info, err);
    return r < 0 ? r : reply(&info, ret_reply, err);
}

int snapshot_service_create(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct snapshot_request wanted = { 0 };
    struct snapshot_info info = { 0 };
    int r = snapshot_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.sandbox, &sandbox, err);
    if (r == 0)
        r = sandbox_snapshot(sandbox, wanted.name, wanted.kind, &info, err);
    return r < 0 ? r : reply(&info, ret_reply, err);
}

int snapshot_service_rollback(const struct call *call, const json_t *request, json_t **ret_reply,
                              struct err *err)
{
    static const char *const fields[] = { "sandboxId", "snapshot", "pruneNewer", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    const char *name = NULL;
    bool prune_newer = false;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_snapshot_needed(request, "snapshot", &name, err);
    if (r == 0)
        r = json_get_bool(request, "pruneNewer", &prune_newer, err);
    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = sandbox_rollback(sandbox, name, prune_newer, err);
    return r < 0 ? r : sandbox_ref_reply(sandbox, false, ret_reply, err);
}

int snapshot_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err)
{
    static const char *const fields[] = { "sandboxId", "snapshot", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    const char *name = NULL;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = field_snapshot_needed(request, "snapshot", &name, err);
    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    return r < 0 ? r : sandbox_remove_snapshot(sandbox, name, err);
}

int snapshot_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "sandboxId", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_free struct snapshot_info *snapshots = NULL;
    cleanup_json json_t *list = json_array();
    size_t count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = sandbox_list_snapshots(sandbox, &snapshots, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, snapshot_json(&snapshots[i])) < 0)
            return err_sys(err, -ENOMEM, "list snapshots");
    sandbox_get_info(sandbox, false, &info);
    *ret_reply = json_pack("{s:O, s:s}", "snapshots", list, "base", info.base);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "list snapshots");
}
