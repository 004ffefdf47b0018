// SPDX-License-Identifier: Apache-2.0
/* The control API: operations on one sandbox. */
#include "host/sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "e2b/control/history.h"
#include "e2b/control/network.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/control/sandbox_request.h"
#include "e2b/control/start.h"
#include "e2b/control/volume.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/ref.h"
#include "e2b/core/wake.h"
#include "e2b/template/template_ref.h"
#include "host/backup/deep_pause.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/sandbox/network.h"
#include "http/exchange.h"

enum { REFRESH_MAX_S = 3600 };

static enum MHD_Result health(struct e2b_request *request)
{
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

/* --- create ----------------------------------------------------------------------------------- */

static int create(const struct e2b_request *request, const struct e2b_create *wish,
                  struct sandbox **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SANDBOX_METADATA_MAX);
    cleanup_with(net_layer_done) struct net_layer network = { 0 };
    struct sandbox_mount mounts[SANDBOX_MOUNTS_MAX];
    struct e2b_template_ref template;
    struct sandbox_spec spec = { .caller = &request->exchange->caller,
                                 .stored_template = template.name };
    int r = e2b_template_find(request, wish->template_id, &template, err);

    if (r < 0)
        return r;
    (void)json_object_set_new(wish->metadata, "templateID", json_string(template.id));
    if (template.alias[0])
        (void)json_object_set_new(wish->metadata, "alias", json_string(template.alias));
    r = e2b_start_note(request->host, template.name, wish->metadata, &spec.limits, err);
    if (r < 0)
        return r;
    spec.mounts = mounts;
    r = e2b_volume_mounts(request, template.name, wish->metadata, mounts, &spec.mount_count, err);
    if (r < 0)
        return r;
    if (json_write(wish->metadata, &text) < 0)
        return err_set(err, ERR_INVALID, "metadata and envVars are longer than %d bytes",
                       SANDBOX_METADATA_MAX);
    r = e2b_network_layer(request, spec.caller->owner,
                          json_field(request->body, "network"), /* the metadata has no secrets */
                          e2b_metadata_bool(wish->metadata, "internet"), &network, err);
    if (r < 0)
        return r;
    spec.network = &network;
    spec.metadata = text.data;
    spec.ttl_ms = wish->timeout_s ? wish->timeout_s * 1000 : 1;
    spec.expire_action = e2b_action(request->host, wish->metadata);
    return sandbox_create(request->host, &spec, ret, err);
}

static enum MHD_Result create_answer(struct e2b_request *request, bool is_v1)
{
    cleanup_with(e2b_create_done) struct e2b_create wish = { 0 };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct sandbox *sandbox = NULL;
    struct err err = { 0 };

    e2b_history_begin(request->e2b->history);
    if (e2b_create_parse(request->body, is_v1, &wish, &err) < 0 ||
        create(request, &wish, &sandbox, &err) < 0)
        return e2b_reply_err(request, &err);
    if (e2b_start_run(request->host, sandbox, wish.metadata, request->connection_fd, &err) < 0) {
        struct err ignored;

        (void)sandbox_destroy(sandbox, &ignored);
        sandbox_unref(sandbox);
        return e2b_reply_err(request, &err);
    }
    sandbox_get_info(sandbox, false, &info);
    sandbox_unref(sandbox);
    return e2b_reply_json(request, MHD_HTTP_CREATED,
                          e2b_sandbox_json(request, &info, wish.metadata));
}

static enum MHD_Result create_v1(struct e2b_request *request)
{
    return create_answer(request, true);
}

static enum MHD_Result create_v2(struct e2b_request *request)
{
    return create_answer(request, false);
}

/* --- get, kill -------------------------------------------------------------------------------- */

static enum MHD_Result get(struct e2b_request *request)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_json json_t *metadata = NULL;
    struct err err = { 0 };

    if (e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    sandbox_get_info(request->sandbox, false, &info);
    metadata = e2b_info_note(&info);
    return e2b_reply_json(request, MHD_HTTP_OK, e2b_detail_json(request, &info, metadata));
}

static enum MHD_Result kill_it(struct e2b_request *request)
{
    struct err err = { 0 };

    if (e2b_ref_find(request, &err) < 0 || sandbox_destroy(request->sandbox, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

/* --- time ------------------------------------------------------------------------------------- */

/* A sandbox without a timeout keeps having none. */
static int extend(struct sandbox *sandbox, const json_t *metadata, uint64_t timeout_s,
                  struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, false, &info);
    if (info.expires_ms == 0 || info.expires_ms >= clock_wall_ms() + timeout_s * 1000)
        return 0;
    return e2b_set_timeout(sandbox, metadata, timeout_s, err);
}

/* A sandbox that E2B's clients did not make gets its tokens when one first connects. Its ports stay
 * private. */
static int tokens_in(json_t *metadata, const void *context, struct err *err)
{
    int r = 0;

    (void)context;
    if (e2b_metadata_text(metadata, "accessToken") || e2b_metadata_is_open(metadata))
        return 0;
    r = e2b_metadata_add_tokens(metadata, err);
    if (r == 0)
        r = e2b_metadata_add_traffic_token(metadata, err);
    return r < 0 ? r : 1;
}

static int pauses_in(json_t *metadata, const void *context, struct err *err)
{
    int r = tokens_in(metadata, context, err);

    return r < 0 ? r : json_object_set_new(metadata, "autoPause", json_true()) + 1;
}

static int metadata_take(struct e2b_request *request, e2b_metadata_fn change, const void *context,
                         struct err *err)
{
    json_t *metadata = NULL;
    int r = e2b_metadata_change(request->sandbox, change, context, &metadata, err);

    if (r < 0)
        return r;
    json_decref(request->metadata);
    request->metadata = metadata;
    return 0;
}

/* What a paused sandbox kept in memory is given up. */
static int forget_memory(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, false, &info);
    return info.state == SANDBOX_PAUSED ? sandbox_stop(sandbox, err) : 0;
}

static int connect_it(struct e2b_request *request, uint64_t timeout_s, bool *ret_was_active,
                      struct err *err)
{
    bool with_memory = true;
    int r = json_get_bool(request->body, "memory", &with_memory, err);

    if (r == 0)
        r = e2b_timeout_parse(request->body, "timeout", &timeout_s, err);
    if (r == 0)
        r = e2b_ref_find(request, err);
    if (r == 0)
        r = metadata_take(request, tokens_in, NULL, err);
    if (r == 0 && !with_memory)
        r = forget_memory(request->sandbox, err);
    if (r == 0)
        r = e2b_wake(request, timeout_s, ret_was_active, err);
    if (r == 0 && *ret_was_active)
        r = extend(request->sandbox, request->metadata, timeout_s, err);
    return r;
}

static enum MHD_Result connect_answer(struct e2b_request *request, unsigned status)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(request->sandbox, false, &info);
    return e2b_reply_json(request, status, e2b_sandbox_json(request, &info, request->metadata));
}

static enum MHD_Result connect_to(struct e2b_request *request)
{
    bool was_active = false;
    struct err err = { 0 };

    if (connect_it(request, E2B_TIMEOUT_DEFAULT_S, &was_active, &err) < 0)
        return e2b_reply_err(request, &err);
    return connect_answer(request, was_active ? MHD_HTTP_OK : MHD_HTTP_CREATED);
}

/* The older form of the same. */
static enum MHD_Result resume(struct e2b_request *request)
{
    bool was_active = false, pauses = false;
    struct err err = { 0 };

    if (e2b_ref_find(request, &err) < 0 ||
        json_get_bool(request->body, "autoPause", &pauses, &err) < 0)
        return e2b_reply_err(request, &err);
    if (e2b_is_active(request->sandbox))
        return e2b_reply_error(request, MHD_HTTP_CONFLICT, "sandbox '%s' is already running",
                               request->params[0]);
    if ((pauses && metadata_take(request, pauses_in, NULL, &err) < 0) ||
        connect_it(request, E2B_TIMEOUT_DEFAULT_S, &was_active, &err) < 0)
        return e2b_reply_err(request, &err);
    return connect_answer(request, MHD_HTTP_CREATED);
}

static enum MHD_Result not_running(struct e2b_request *request)
{
    return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "sandbox '%s' is not running",
                           request->params[0]);
}

static enum MHD_Result set_timeout(struct e2b_request *request)
{
    uint64_t timeout_s = UINT64_MAX;
    struct err err = { 0 };

    if (e2b_timeout_parse(request->body, "timeout", &timeout_s, &err) < 0)
        return e2b_reply_err(request, &err);
    if (timeout_s == UINT64_MAX)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "timeout is missing");
    if (e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    request->metadata = e2b_metadata_read(request->sandbox);
    if (e2b_set_timeout(request->sandbox, request->metadata, timeout_s, &err) < 0)
        return err.cause == CAUSE_SESSION_PAUSED ? not_running(request)
                                                 : e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static enum MHD_Result refresh(struct e2b_request *request)
{
    uint64_t duration_s = 15;
    struct err err = { 0 };

    if (e2b_timeout_parse(request->body, "duration", &duration_s, &err) < 0)
        return e2b_reply_err(request, &err);
    if (duration_s > REFRESH_MAX_S)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "duration must be at most %d seconds",
                               REFRESH_MAX_S);
    if (e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!e2b_is_active(request->sandbox))
        return not_running(request);
    request->metadata = e2b_metadata_read(request->sandbox);
    if (extend(request->sandbox, request->metadata, duration_s, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

/* --- pause ------------------------------------------------------------------------------------ */

/* A paused sandbox does not expire; that is recorded together with its state. */
static int pause_it(struct sandbox *sandbox, bool with_memory, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info before = { 0 };
    struct err ignored;
    int r;

    sandbox_get_info(sandbox, false, &before);
    r = sandbox_plan_expiry(sandbox, 0, before.expire_action, err);
    if (r < 0)
        return r;
    if (host_has_deep_e2b_pause(sandbox_host(sandbox)))
        r = sandbox_deep_pause(sandbox, err);
    else
        r = with_memory ? sandbox_pause(sandbox, err) : sandbox_stop(sandbox, err);
    if (r < 0)
        (void)sandbox_plan_expiry(sandbox, before.expires_ms, before.expire_action, &ignored);
    return r;
}

static enum MHD_Result pause_answer(struct e2b_request *request)
{
    bool with_memory = true;
    struct err err = { 0 };

    if (json_get_bool(request->body, "memory", &with_memory, &err) < 0 ||
        e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!e2b_is_active(request->sandbox))
        return e2b_reply_error(request, MHD_HTTP_CONFLICT, "sandbox '%s' is already paused",
                               request->params[0]);
    if (pause_it(request->sandbox, with_memory, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

/* --- network ---------------------------------------------------------------------------------- */

/* Settings for incoming traffic are not replaced. */
static int network_in(json_t *metadata, const void *wanted, struct err *err)
{
    static const char *const kept[] = { "allowPublicTraffic", "maskRequestHost", "httpsPorts" };
    const json_t *old = json_object_get(metadata, "network");
    json_t *network;
    bool wants_internet;
    int r = e2b_network_internet(wanted, &wants_internet, err);

    if (r < 0)
        return r;
    network = e2b_network_copy(wanted);
    (void)json_object_set_new(metadata, "internet", json_boolean(wants_internet));
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        json_t *value = json_object_get(old, kept[i]);

        (void)json_object_del(network, kept[i]);
        if (value)
            (void)json_object_set(network, kept[i], value);
    }
    return json_object_set_new(metadata, "network", network) + 1;
}

static enum MHD_Result set_network(struct e2b_request *request)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    struct err err = { 0 };
    bool wants_internet;

    if (e2b_network_check(request->body, &err) < 0 ||
        e2b_network_internet(request->body, &wants_internet, &err) < 0 ||
        e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!e2b_is_active(request->sandbox))
        return not_running(request);
    if (e2b_network_layer(request, sandbox_owner(request->sandbox), request->body, wants_internet,
                          &layer, &err) < 0 ||
        sandbox_network_set(request->sandbox, &layer, &err) < 0 ||
        metadata_take(request, network_in, request->body, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static const struct e2b_route routes[] = {
    { "GET", "/health", .answer = health, .is_open = true },
    { "POST", "/sandboxes", .answer = create_v1 },
    { "POST", "/v2/sandboxes", .answer = create_v2 },
    { "POST", "/sandboxes/{}/connect", .answer = connect_to },
    { "POST", "/v2/sandboxes/{}/connect", .answer = connect_to },
    { "POST", "/sandboxes/{}/resume", .answer = resume },
    { "POST", "/sandboxes/{}/timeout", .answer = set_timeout },
    { "POST", "/sandboxes/{}/refreshes", .answer = refresh },
    { "POST", "/sandboxes/{}/pause", .answer = pause_answer },
    { "PUT", "/sandboxes/{}/network", .answer = set_network },
    { "GET", "/sandboxes/{}", .answer = get },
    { "DELETE", "/sandboxes/{}", .answer = kill_it },
};

const struct e2b_routes e2b_sandbox_routes = { routes, ARRAY_SIZE(routes) };
