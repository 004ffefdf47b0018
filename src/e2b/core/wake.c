// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/wake.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/control/start.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/owner/owner.h"
#include "host/sandbox/sandbox.h"

static enum sandbox_state state_of(struct sandbox *sandbox)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, false, &info);
    return info.state;
}

bool e2b_is_active(struct sandbox *sandbox)
{
    return state_of(sandbox) == SANDBOX_ACTIVE;
}

enum sandbox_action e2b_action(const struct host *host, const json_t *metadata)
{
    if (!e2b_metadata_bool(metadata, "autoPause"))
        return ACTION_KILL;
    if (host_has_deep_e2b_pause(host))
        return ACTION_DEEP_PAUSE;
    return json_is_false(json_object_get(metadata, "autoPauseMemory")) ? ACTION_STOP : ACTION_PAUSE;
}

/* A timeout of 0 ends the sandbox at once, and is below every ceiling. */
static int ttl_limit(struct sandbox *sandbox, uint64_t timeout_s, uint64_t *ret_ms, struct err *err)
{
    *ret_ms = 0;
    return timeout_s == 0 ? 0
                          : host_limit_ttl(sandbox_host(sandbox), sandbox_owner(sandbox),
                                           timeout_s * 1000, ret_ms, err);
}

int e2b_set_timeout(struct sandbox *sandbox, const json_t *metadata, uint64_t timeout_s,
                    struct err *err)
{
    uint64_t ttl_ms = 0;
    int r = ttl_limit(sandbox, timeout_s, &ttl_ms, err);

    return r < 0 ? r
                 : sandbox_set_expiry(sandbox, clock_wall_ms() + ttl_ms,
                                      e2b_action(sandbox_host(sandbox), metadata), err);
}

/* Records the timeout together with the state, so that a killed daemon leaves no sandbox that runs
 * for ever, and none that expires while paused. */
static int wake(struct sandbox *sandbox, const json_t *metadata, uint64_t timeout_s, bool is_cold,
                struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info before = { 0 };
    uint64_t ttl_ms = 0;
    struct err ignored;
    int r = ttl_limit(sandbox, timeout_s, &ttl_ms, err);

    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &before);
    r = sandbox_plan_expiry(sandbox, clock_wall_ms() + ttl_ms,
                            e2b_action(sandbox_host(sandbox), metadata), err);
    if (r == 0)
        r = is_cold ? sandbox_start(sandbox, err) : sandbox_resume(sandbox, err);
    if (r < 0 && !e2b_is_active(sandbox))
        (void)sandbox_plan_expiry(sandbox, before.expires_ms, before.expire_action, &ignored);
    return r;
}

/* Two requests may resume a sandbox at the same time: the second one finds it running. */
int e2b_wake(const struct e2b_request *request, uint64_t timeout_s, bool *ret_was_active,
             struct err *err)
{
    enum sandbox_state state = state_of(request->sandbox);
    bool is_cold =
        state == SANDBOX_STOPPED || state == SANDBOX_FAILED || state == SANDBOX_DEEP_PAUSED;
    int r;

    *ret_was_active = state == SANDBOX_ACTIVE;
    if (*ret_was_active)
        return 0;
    r = wake(request->sandbox, request->metadata, timeout_s, is_cold, err);
    if (r < 0 && e2b_is_active(request->sandbox)) {
        *ret_was_active = true;
        return e2b_set_timeout(request->sandbox, request->metadata, timeout_s, err);
    }
    if (r == 0 && is_cold)
        r = e2b_start_run(request->host, request->sandbox, request->metadata,
                          request->connection_fd, err);
    return r;
}

int e2b_wake_for_traffic(const struct e2b_request *request, struct err *err)
{
    uint64_t timeout_s =
        (uint64_t)json_integer_value(json_object_get(request->metadata, "timeout"));
    bool was_active;

    if (!e2b_metadata_bool(request->metadata, "autoResume"))
        return err_refuse(err, CAUSE_SESSION_PAUSED, "the sandbox is paused");
    if (timeout_s < E2B_TIMEOUT_DEFAULT_S)
        timeout_s = E2B_TIMEOUT_DEFAULT_S;
    return e2b_wake(request, timeout_s, &was_active, err);
}
