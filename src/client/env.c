// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "holt.h"

/* Only the flag changes after creation, so no lock is needed. */
struct holt_env {
    struct holt *holt;
    char *id;
    struct holt_capabilities *can; /* a result */
    atomic_bool is_destroyed;
};

static bool has_limits(const struct holt_capabilities *can)
{
    return can->memory_limit && can->cpu_limit && can->pids_limit;
}

static int check_needs(const struct holt_capabilities *can, unsigned needs,
                       struct holt_error *error)
{
    const struct {
        unsigned need;
        bool is_there;
        const char *name;
    } rows[] = {
        { HOLT_NEEDS_SNAPSHOTS, can->snapshots, "snapshots" },
        { HOLT_NEEDS_ROLLBACK, can->rollback, "rollback" },
        { HOLT_NEEDS_FORK, can->fork, "fork" },
        { HOLT_NEEDS_PAUSE, can->pause, "pause" },
        { HOLT_NEEDS_QUOTA, can->quota, "quota" },
        { HOLT_NEEDS_LAUNCH, can->launch, "launch" },
        { HOLT_NEEDS_LIMITS, has_limits(can), "limits" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if ((needs & rows[i].need) && !rows[i].is_there)
            return error_set(error, "unimplemented", "the daemon cannot do this: %s", rows[i].name);
        needs &= ~rows[i].need;
    }
    return needs ? error_set(error, "invalid_argument", "unknown requirement %#x", needs) : 0;
}

static struct holt_env *env_new(struct holt *holt, const char *id, struct holt_capabilities *can)
{
    struct holt_env *env = xcalloc(1, sizeof(*env));

    env->holt = holt;
    env->id = xstrdup(id);
    env->can = can;
    atomic_init(&env->is_destroyed, false);
    return env;
}

/* Checks the requirements first, so that no sandbox is left behind when one is missing. */
int holt_env_create(struct holt *holt, const struct holt_sandbox_options *options, int64_t deadline,
                    struct holt_env **ret, struct holt_error *error)
{
    struct holt_sandbox_options given = HOLT_INIT(holt_sandbox_options);
    cleanup_result struct holt_capabilities *can = NULL;
    cleanup_result struct holt_sandbox *sandbox = NULL;

    if (options_take(&given, sizeof(given), options, error) < 0 ||
        holt_capabilities(holt, deadline, &can, error) < 0 ||
        check_needs(can, given.needs, error) < 0 ||
        holt_sandbox_create(holt, &given, deadline, &sandbox, error) < 0)
        return -1;
    *ret = env_new(holt, sandbox->id, TAKE_PTR(can));
    return 0;
}

int holt_env_attach(struct holt *holt, const char *sandbox, unsigned needs, int64_t deadline,
                    struct holt_env **ret, struct holt_error *error)
{
    cleanup_result struct holt_capabilities *can = NULL;
    cleanup_result struct holt_sandbox *found = NULL;

    if (holt_capabilities(holt, deadline, &can, error) < 0 || check_needs(can, needs, error) < 0 ||
        holt_sandbox_get(holt, sandbox, deadline, &found, error) < 0)
        return -1;
    *ret = env_new(holt, found->id, TAKE_PTR(can));
    return 0;
}

void holt_env_free(struct holt_env *env)
{
    if (!env)
        return;
    holt_free(env->can);
    free(env->id);
    free(env);
}

const char *holt_env_id(const struct holt_env *env)
{
    return env->id;
}

const struct holt_capabilities *holt_env_capabilities(const struct holt_env *env)
{
    return env->can;
}

/* Returns whether the environment has this capability. */
static int check(const struct holt_env *env, unsigned needs, struct holt_error *error)
{
    if (!atomic_load(&env->is_destroyed))
        return check_needs(env->can, needs, error);
    error_fill(error, "failed_precondition", "sandbox '%s' was destroyed", env->id);
    (void)memcpy(error->cause, "InvalidState", sizeof("InvalidState"));
    return -1;
}

static bool is_gone(const struct holt_error *error)
{
    return strcmp(error->cause, "SessionNotFound") == 0;
}

int holt_env_state(struct holt_env *env, int64_t deadline, enum holt_state *ret,
                   struct holt_error *error)
{
    cleanup_result struct holt_sandbox *sandbox = NULL;

    *ret = HOLT_STATE_DESTROYED;
    if (atomic_load(&env->is_destroyed))
        return 0;
    if (holt_sandbox_get(env->holt, env->id, deadline, &sandbox, error) < 0) {
        if (is_gone(error))
            return 0;
        *ret = HOLT_STATE_FAILED;
        return -1;
    }
    *ret = sandbox->state;
    return 0;
}

int holt_env_pause(struct holt_env *env, int64_t deadline, struct holt_error *error)
{
    if (check(env, HOLT_NEEDS_PAUSE, error) < 0)
        return -1;
    return holt_sandbox_pause(env->holt, env->id, deadline, NULL, error);
}

int holt_env_resume(struct holt_env *env, int64_t deadline, struct holt_error *error)
{
    if (check(env, HOLT_NEEDS_PAUSE, error) < 0)
        return -1;
    return holt_sandbox_resume(env->holt, env->id, deadline, NULL, error);
}

int holt_env_destroy(struct holt_env *env, int64_t deadline, struct holt_error *error)
{
    if (atomic_load(&env->is_destroyed))
        return 0;
    if (holt_sandbox_destroy(env->holt, env->id, deadline, error) < 0 && !is_gone(error))
        return -1;
    atomic_store(&env->is_destroyed, true);
    return 0;
}

int holt_env_turn(struct holt_env *env, int64_t deadline, struct holt_snapshot **ret,
                  struct holt_error *error)
{
    if (check(env, HOLT_NEEDS_SNAPSHOTS, error) < 0)
        return -1;
    return holt_turn(env->holt, env->id, deadline, ret, error);
}

int holt_env_snapshot(struct holt_env *env, const char *name, int64_t deadline,
                      struct holt_snapshot **ret, struct holt_error *error)
{
    if (check(env, HOLT_NEEDS_SNAPSHOTS, error) < 0)
        return -1;
    return holt_snapshot_create(env->holt, env->id, name, deadline, ret, error);
}

int holt_env_rollback(struct holt_env *env, const char *snapshot, int64_t deadline,
                      struct holt_error *error)
{
    if (check(env, HOLT_NEEDS_ROLLBACK, error) < 0)
        return -1;
    return holt_rollback(env->holt, env->id, snapshot, false, deadline, error);
}

int holt_env_exec(struct holt_env *env, const struct holt_command *command, int64_t deadline,
                  struct holt_result **ret, struct holt_error *error)
{
    if (check(env, 0, error) < 0)
        return -1;
    return holt_exec(env->holt, env->id, command, deadline, ret, error);
}

int holt_env_execute_tool(struct holt_env *env, const struct holt_tool_call *call, int64_t deadline,
                          struct holt_tool_result **ret, struct holt_error *error)
{
    if (check(env, 0, error) < 0)
        return -1;
    return holt_tool_execute(env->holt, env->id, call, deadline, ret, error);
}
