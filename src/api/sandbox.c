// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/sandbox.h"

#include <errno.h>
#include <stdlib.h>

#include "api/message/fields.h"
#include "api/message/messages.h"
#include "api/message/run_request.h"
#include "api/message/sandbox_ref.h"
#include "api/message/sandbox_request.h"
#include "api/service.h"
#include "api/stream/process_stream.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/core/host.h"
#include "host/sandbox/mount.h"
#include "host/volume/named_volume.h"

int sandbox_service_run(const struct call *call, const json_t *request, struct stream **ret,
                        struct err *err)
{
    cleanup_with(run_request_done) struct run_request wanted = { 0 };
    int r = run_request_parse(request, &wanted, err);

    if (r < 0)
        return r;
    return process_stream_run(call, &wanted.machine, &wanted.process.spec, ret, err);
}

/* What a sandbox is to have mounted, into room for SANDBOX_MOUNTS_MAX. */
static int mounts_find(const struct call *call, const struct create_request *wanted,
                       struct sandbox_mount *ret, size_t *ret_count, struct err *err)
{
    const json_t *mount;
    size_t index;

    json_array_foreach(wanted->volumes, index, mount)
    {
        const char *word = json_string_value(json_object_get(mount, "volume"));
        const char *path = json_string_value(json_object_get(mount, "path"));
        int r = named_volume_mount(call->host, word, path, &ret[index], err);

        if (r < 0)
            return r;
    }
    *ret_count = json_array_size(wanted->volumes);
    return sandbox_mounts_check(ret, *ret_count, err);
}

int sandbox_service_create(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err)
{
    cleanup_with(create_request_done) struct create_request wanted = { 0 };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct sandbox_mount mounts[SANDBOX_MOUNTS_MAX];
    struct host_capabilities can;
    bool is_joined = false;
    int r = create_request_parse(request, &wanted, err);

    if (r == 0)
        r = mounts_find(call, &wanted, mounts, &wanted.spec.mount_count, err);
    wanted.spec.mounts = mounts;
    if (r == 0)
        r = sandbox_create_once(call->host, &wanted.spec, &sandbox, &is_joined, err);
    if (r == 0)
        r = sandbox_ref_reply(sandbox, false, ret_reply, err);
    if (r < 0)
        return r;
    if (is_joined)
        (void)json_object_set_new(*ret_reply, "joined", json_true());
    host_capabilities(call->host, &can);
    (void)json_object_set_new(*ret_reply, "capabilities", capabilities_json(&can));
    return 0;
}

/* Finds the sandbox of a request that names nothing else. */
static int find_only(const struct call *call, const json_t *request, struct sandbox **ret,
                     struct err *err)
{
    static const char *const fields[] = { "sandboxId", NULL };
    int r = json_only_fields(request, fields, err);

    return r < 0 ? r : sandbox_ref_find(call, request, ret, err);
}

int sandbox_service_get(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    int r = find_only(call, request, &sandbox, err);

    return r < 0 ? r : sandbox_ref_reply(sandbox, true, ret_reply, err);
}

/* A change of state, answered with what the sandbox has become. */
static int change(const struct call *call, const json_t *request,
                  int (*to)(struct sandbox *sandbox, struct err *err), json_t **ret_reply,
                  struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    int r = find_only(call, request, &sandbox, err);

    if (r == 0)
        r = to(sandbox, err);
    return r < 0 ? r : sandbox_ref_reply(sandbox, false, ret_reply, err);
}

int sandbox_service_pause(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    return change(call, request, sandbox_pause, ret_reply, err);
}

int sandbox_service_resume(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err)
{
    return change(call, request, sandbox_resume, ret_reply, err);
}

int sandbox_service_stop(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    return change(call, request, sandbox_stop, ret_reply, err);
}

int sandbox_service_start(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    return change(call, request, sandbox_start, ret_reply, err);
}

int sandbox_service_destroy(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    int r = find_only(call, request, &sandbox, err);

    (void)ret_reply;
    return r < 0 ? r : sandbox_destroy(sandbox, err);
}

static void infos_free(struct sandbox_info *infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&infos[i]);
    free(infos);
}

int sandbox_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    static const char *const fields[] = { "labels", NULL };
    cleanup_free struct label *labels = NULL;
    cleanup_json json_t *list = json_array();
    struct sandbox_info *infos = NULL;
    size_t label_count = 0, count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_labels(request, &labels, &label_count, err);
    if (r == 0)
        r = sandbox_list(call->host, labels, label_count, &infos, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, sandbox_json(&infos[i], false));
    infos_free(infos, count);
    *ret_reply = json_pack("{s:O}", "sandboxes", list);
    return *ret_reply && json_array_size(list) == count ? 0
                                                        : err_sys(err, -ENOMEM, "list sandboxes");
}

/* Drops the references. */
static json_t *forks_json(struct sandbox *const *forks, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

        sandbox_get_info(forks[i], false, &info);
        (void)json_array_append_new(list, sandbox_json(&info, false));
        sandbox_unref(forks[i]);
    }
    return list;
}

int sandbox_service_fork(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct sandbox *forks[FORK_MAX] = { NULL };
    struct fork_request wanted = { 0 };
    int r = fork_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.sandbox, &sandbox, err);
    if (r == 0)
        r = sandbox_fork(sandbox, wanted.from, wanted.count, NULL, forks, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "sandboxes", forks_json(forks, wanted.count));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
