// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/sandbox.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/agent_setup.h"
#include "api/message/messages.h"
#include "api/message/network_messages.h"
#include "api/message/permission_messages.h"
#include "api/message/process_messages.h"
#include "api/message/process_spec.h"
#include "api/service.h"
#include "api/stream/process_stream.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "host/backup/deep_pause.h"
#include "host/core/host.h"
#include "host/machine/machine.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/mount.h"
#include "host/volume/named_volume.h"
#include "http/exchange.h"
#include "net/policy.h"

_Static_assert(MSG_CREATE_SANDBOX_REQUEST_LABELS_MAX_ITEMS <= SANDBOX_LABELS_MAX, "labels");
_Static_assert(MSG_CREATE_SANDBOX_REQUEST_VOLUMES_MAX_ITEMS <= SANDBOX_MOUNTS_MAX, "mounts");
_Static_assert(MSG_CREATE_SANDBOX_REQUEST_IDEMPOTENCY_KEY_MAX_BYTES <= SANDBOX_KEY_MAX, "keys");
_Static_assert(MSG_FORK_REQUEST_COUNT_MAX <= FORK_MAX, "forks");
_Static_assert(MSG_FORK_REQUEST_FROM_MAX_BYTES <= SNAPSHOT_NAME_MAX, "snapshots");

static struct sandbox_limits limits_of(const struct msg_limits *limits)
{
    return limits ? (struct sandbox_limits){ .memory_bytes = limits->memory_bytes,
                                             .cpu_millis = limits->cpu_millis,
                                             .pids = limits->pids,
                                             .files = limits->files }
                  : (struct sandbox_limits){ 0 };
}

/* Reads the network of a request; *ret is NULL if it says nothing. */
static int network_take(const struct msg_network_policy *message, struct net_layer *room,
                        const struct net_layer **ret, struct err *err)
{
    int r = network_layer_is_given(message) ? network_layer_read(message, room, err) : 0;

    *ret = r == 0 && network_layer_is_given(message) ? room : NULL;
    return r;
}

int sandbox_service_run(const struct call *call, const struct msg_run_request *request,
                        struct stream **ret, struct err *err)
{
    static const struct msg_sandbox_spec none = { .template = "", .runtime = "" };
    const struct msg_sandbox_spec *sandbox = request->sandbox ? request->sandbox : &none;
    cleanup_with(net_layer_done) struct net_layer network = { 0 };
    struct machine_spec machine = {
        .caller = call->caller,
        .template = text_or_null(sandbox->template),
        .runtime = text_or_null(sandbox->runtime),
        .limits = limits_of(sandbox->limits),
        .quota_bytes = sandbox->quota_bytes,
    };
    struct process_spec process;
    int r = process_spec_fill(request->process, call->arena, &process, err);

    if (r == 0 && process.tier) {
        (void)err_set(err, ERR_INVALID, "a run has one runtime, and no tier");
        r = err_remedy(err, "set the runtime of the sandbox instead");
    }
    if (r == 0)
        r = network_take(sandbox->network, &network, &machine.network, err);
    return r < 0 ? r : process_stream_run(call, &machine, &process, ret, err);
}

static const struct label *labels_of(const struct pair *pairs, size_t count, struct arena *arena)
{
    struct label *labels = arena_take(arena, count, sizeof(*labels));

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(labels[i].key, sizeof(labels[i].key), "%s", pairs[i].key);
        (void)snprintf(labels[i].value, sizeof(labels[i].value), "%s", pairs[i].value);
    }
    return labels;
}

/* Computes the digest of everything but the key, whatever the order of the fields. */
static int digest_make(const struct call *call, const char **ret, struct err *err)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    cleanup_json json_t *rest = json_copy((json_t *)(uintptr_t)call->message);
    cleanup_free char *text = NULL;
    char *digest = arena_take(call->arena, SANDBOX_DIGEST_LEN + 1, 1);

    (void)json_object_del(rest, "idempotencyKey");
    text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return err_sys(err, -ENOMEM, "read the request");
    (void)SHA256((const unsigned char *)text, strlen(text), hash);
    hex_encode(hash, sizeof(hash), digest);
    *ret = digest;
    return 0;
}

static int mounts_find(const struct call *call, const struct msg_volume_mount *messages,
                       size_t count, const struct sandbox_mount **ret, struct err *err)
{
    struct sandbox_mount *mounts = arena_take(call->arena, count, sizeof(*mounts));

    for (size_t i = 0; i < count; i++) {
        const struct named_mount wanted = { .volume = messages[i].volume,
                                            .path = messages[i].path,
                                            .is_read_only = messages[i].read_only };
        int r = named_volume_mount(call->host, call->caller, &wanted, &mounts[i], err);

        if (r < 0)
            return r;
    }
    *ret = mounts;
    return sandbox_mounts_check(mounts, count, err);
}

static int spec_fill(const struct call *call, const struct msg_create_sandbox_request *request,
                     struct sandbox_spec *ret, struct err *err)
{
    int r = 0;

    *ret = (struct sandbox_spec){
        .caller = call->caller,
        .name = text_or_null(request->name),
        .template = text_or_null(request->template),
        .runtime = text_or_null(request->runtime),
        .limits = limits_of(request->limits),
        .quota_bytes = request->quota_bytes,
        .labels = labels_of(request->labels, request->labels_count, call->arena),
        .label_count = request->labels_count,
        .snapshots_max = request->max_snapshots,
        .ttl_ms = request->ttl_ms,
        .idle_timeout_ms = request->idle_timeout_ms,
        .key = text_or_null(request->idempotency_key),
        .mount_count = request->volumes_count,
    };
    if (request->codebase) {
        ret->codebase = request->codebase->codebase;
        ret->codebase_path = text_or_null(request->codebase->path);
    }
    ret->permissions = permission_request_of(request->permissions);
    (void)sandbox_action_parse(request->expire_action, &ret->expire_action);
    (void)sandbox_action_parse(request->idle_action, &ret->idle_action);
    if (ret->key)
        r = digest_make(call, &ret->digest, err);
    return r < 0 ? r
                 : mounts_find(call, request->volumes, request->volumes_count, &ret->mounts, err);
}

/* Writes the address of all ports: a host name has the id without its dash. */
static void address_write(const struct listener *listener, const char *id, char *ret)
{
    char name[LISTENER_ADDRESS_SIZE / 2];
    const char *dash = strchrnul(id, '-');
    bool is_tls;

    if (*listener->origin_rules.preview ? listener_preview(listener, name, sizeof(name), &is_tls)
                                        : listener_name(listener, name, sizeof(name)))
        (void)snprintf(ret, LISTENER_ADDRESS_SIZE, "<port>-%.*s%s.%s", (int)(dash - id), id,
                       dash + (*dash == '-'), name);
}

/* Prepares the agent of a new sandbox, which is removed if that fails. The agent of a joined one is
 * prepared by the call that created it, or was. */
static int agent_make(const struct call *call, struct agent_setup *setup, struct sandbox *sandbox,
                      bool is_joined, struct msg_agent *ret, struct err *err)
{
    struct err ignored;
    int r = agent_setup_finish(call, setup, sandbox, is_joined, ret, err);

    if (r < 0 && !is_joined)
        (void)sandbox_destroy(sandbox, &ignored);
    return r;
}

int sandbox_service_create(const struct call *call,
                           const struct msg_create_sandbox_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_capabilities capabilities;
    struct host_capabilities can;
    struct msg_sandbox message;
    cleanup_with(net_layer_done) struct net_layer network = { 0 };
    cleanup_with(agent_setup_done) struct agent_setup setup = { .is_wanted = false };
    struct sandbox_spec spec;
    struct msg_agent agent;
    char *address = arena_take(call->arena, LISTENER_ADDRESS_SIZE, 1);
    bool is_joined = false;
    int r = spec_fill(call, request, &spec, err);

    if (r == 0)
        r = network_take(request->network, &network, &spec.network, err);
    spec.secrets = request->secrets;
    spec.secret_count = request->secrets_count;
    if (r == 0)
        r = agent_setup_begin(call, request, &setup, &spec, &network, err);
    if (r == 0)
        r = sandbox_create_once(call->host, &spec, &sandbox, &is_joined, err);
    if (r == 0 && setup.is_wanted)
        r = agent_make(call, &setup, sandbox, is_joined, &agent, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &info);
    message = sandbox_message(call, &info, false);
    host_capabilities(call->host, call->caller->owner, &can);
    capabilities = capabilities_message(&can);
    if (call->has_port_names)
        address_write(call->listener, info.id, address);
    return call_reply(call,
                      MESSAGE(msg_create_sandbox_response, .sandbox = &message, .joined = is_joined,
                              .capabilities = &capabilities, .address = address,
                              .agent = setup.is_wanted ? &agent : NULL),
                      err);
}

int sandbox_service_get(const struct call *call, const struct msg_get_sandbox_request *request,
                        struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_sandbox message;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r < 0)
        return r;
    sandbox_get_info(sandbox, true, &info);
    message = sandbox_message(call, &info, true);
    return call_reply(call, MESSAGE(msg_get_sandbox_response, .sandbox = &message), err);
}

/* Returns the action that the word names, or NULL for "". */
static const enum sandbox_action *action_of(const char *word, enum sandbox_action *room)
{
    return *word && sandbox_action_parse(word, room) ? room : NULL;
}

int sandbox_service_update(const struct call *call,
                           const struct msg_update_sandbox_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    const struct msg_volume_mounts *volumes = request->volumes;
    enum sandbox_action expire, idle;
    struct sandbox_change change = {
        .caller = call->caller,
        .name = request->name,
        .labels = labels_of(request->labels, request->labels_count, call->arena),
        .label_count = request->labels_count,
        .dropped_labels = request->remove_labels,
        .dropped_count = request->remove_labels_count,
        .limits = limits_of(request->limits),
        .quota_bytes = request->quota_bytes,
        .has_ttl = request->has_ttl_ms,
        .ttl_ms = request->ttl_ms,
        .expire_action = action_of(request->expire_action, &expire),
        .has_idle_timeout = request->has_idle_timeout_ms,
        .idle_timeout_ms = request->idle_timeout_ms,
        .idle_action = action_of(request->idle_action, &idle),
        .has_snapshots_max = request->has_max_snapshots,
        .snapshots_max = request->max_snapshots,
        .has_mounts = volumes != NULL,
        .mount_count = volumes ? volumes->mounts_count : 0,
    };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0 && volumes)
        r = mounts_find(call, volumes->mounts, volumes->mounts_count, &change.mounts, err);
    if (r == 0)
        r = sandbox_update(sandbox, &change, err);
    return r < 0 ? r : sandbox_reply(call, sandbox, err);
}

/* Changes the state, and replies with the new one. */
static int state_change(const struct call *call, const struct msg_sandbox_request *request,
                        int (*change)(struct sandbox *sandbox, struct err *err), struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = change(sandbox, err);
    return r < 0 ? r : sandbox_reply(call, sandbox, err);
}

int sandbox_service_pause(const struct call *call, const struct msg_pause_sandbox_request *request,
                          struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = request->deep ? sandbox_deep_pause_drained(sandbox, call->connection_fd, err)
                          : sandbox_pause_drained(sandbox, call->connection_fd, err);
    return r < 0 ? r : sandbox_reply(call, sandbox, err);
}

static int process_begin(struct sandbox *sandbox, const struct process_spec *spec,
                         struct arena *arena, struct msg_process_info *ret, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    struct record_info info;
    int r = sandbox_exec(sandbox, spec, &process, err);

    if (r < 0)
        return r;
    record_get(process_record(process), &info);
    *ret = process_info_message(&info, false, arena);
    return 0;
}

/* Forgets a sandbox that another host has taken, and brings it back if that host has deep-paused it
 * since then. */
static int sandbox_bring_back(const struct call *call, struct sandbox **sandbox, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *gone = TAKE_PTR(*sandbox);
    struct err why = { 0 };
    int r = sandbox_move_in(call->host, call->caller, sandbox_id(gone), sandbox, &why);

    if (r == 0 || why.cause != CAUSE_SESSION_NOT_FOUND)
        *err = why;
    return r;
}

/* Resumes a sandbox of this host, or brings one that another host has paused, which is then active.
 */
static int sandbox_find_or_bring(const struct call *call, const char *word, struct sandbox **ret,
                                 struct err *err)
{
    int r = sandbox_find(call->host, call->caller, word, ret, err);

    if (r < 0)
        return err->cause == CAUSE_SESSION_NOT_FOUND
                   ? sandbox_move_in(call->host, call->caller, word, ret, err)
                   : r;
    r = sandbox_resume(*ret, err);
    return r < 0 && err->cause == CAUSE_SESSION_NOT_FOUND ? sandbox_bring_back(call, ret, err) : r;
}

int sandbox_service_resume(const struct call *call,
                           const struct msg_resume_sandbox_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_process_info process;
    struct process_spec spec;
    struct msg_sandbox message;
    int r = request->process ? process_spec_fill(request->process, call->arena, &spec, err) : 0;

    if (r == 0)
        r = sandbox_find_or_bring(call, request->sandbox_id, &sandbox, err);
    spec.is_detached = true;
    if (r == 0 && request->process)
        r = process_begin(sandbox, &spec, call->arena, &process, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &info);
    message = sandbox_message(call, &info, false);
    return call_reply(call,
                      MESSAGE(msg_resume_sandbox_response, .sandbox = &message,
                              .process = request->process ? &process : NULL),
                      err);
}

int sandbox_service_stop(const struct call *call, const struct msg_sandbox_request *request,
                         struct err *err)
{
    return state_change(call, request, sandbox_stop, err);
}

int sandbox_service_start(const struct call *call, const struct msg_sandbox_request *request,
                          struct err *err)
{
    return state_change(call, request, sandbox_start, err);
}

int sandbox_service_destroy(const struct call *call, const struct msg_sandbox_request *request,
                            struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    return r < 0 ? r : sandbox_destroy(sandbox, err);
}

/* Replies with these sandboxes, and frees what the infos own. */
static int infos_reply(const struct call *call, struct sandbox_info *infos, size_t count,
                       struct err *err)
{
    struct msg_sandbox *sandboxes = arena_take(call->arena, count, sizeof(*sandboxes));
    int r;

    for (size_t i = 0; i < count; i++)
        sandboxes[i] = sandbox_message(call, &infos[i], false);
    r = call_reply(
        call, MESSAGE(msg_fork_response, .sandboxes = sandboxes, .sandboxes_count = count), err);
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&infos[i]);
    return r;
}

int sandbox_service_list(const struct call *call, const struct msg_list_sandboxes_request *request,
                         struct err *err)
{
    const struct label *labels = labels_of(request->labels, request->labels_count, call->arena);
    cleanup_free struct sandbox_info *infos = NULL;
    size_t count = 0;

    sandbox_list(call->host, call->caller, labels, request->labels_count, &infos, &count);
    return infos_reply(call, infos, count, err);
}

int sandbox_service_fork(const struct call *call, const struct msg_fork_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct sandbox *forks[FORK_MAX] = { NULL };
    struct fork_spec spec = {
        .caller = call->caller,
        .from = text_or_null(request->from),
        .count = request->count,
        .name = text_or_null(request->name),
        .labels = labels_of(request->labels, request->labels_count, call->arena),
        .label_count = request->labels_count,
        .has_ttl = request->has_ttl_ms,
        .ttl_ms = request->ttl_ms,
        .permissions = permission_request_of(request->permissions),
    };
    cleanup_with(net_layer_done) struct net_layer network = { 0 };
    struct sandbox_info *infos;
    int r;

    (void)sandbox_action_parse(request->expire_action, &spec.expire_action);

    if (strcmp(request->from, SNAPSHOT_TEMPLATE) == 0)
        return err_set(err, ERR_INVALID,
                       "field 'from': 'template' stands for the template itself; create a sandbox "
                       "from that instead");
    r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);
    if (r == 0)
        r = network_take(request->network, &network, &spec.network, err);
    if (r == 0)
        r = sandbox_fork(sandbox, &spec, forks, err);
    if (r < 0)
        return r;
    infos = arena_take(call->arena, request->count, sizeof(*infos));
    for (size_t i = 0; i < request->count; i++) {
        sandbox_get_info(forks[i], false, &infos[i]);
        sandbox_unref(forks[i]);
    }
    return infos_reply(call, infos, request->count, err);
}
