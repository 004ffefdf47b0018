// SPDX-License-Identifier: Apache-2.0
#include "host/prove/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/core/host.h"
#include "host/prove/prove_internal.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "net/policy.h"
#include "runtime/runtime.h"
#include "store/command.h"

enum { OUTSIDE_MS = 5 * 60 * 1000, STATUS_FAILED = 125 };

#define BETWEEN "other-"

/* What one call of prove_run has. */
struct trial {
    const struct config *config;
    char *dir; /* the state directory, and the canaries below it */
    char *state, *run, *canaries;
    struct prove_program program;
    struct prove_helper guard;
    struct proofs *proofs;
};

static int sandbox_make(struct host *host, const char *runtime, struct sandbox **ret,
                        struct err *err)
{
    static const struct net_layer open = { .source = NET_FROM_SANDBOX, .mode = NET_OPEN };
    struct sandbox_spec spec = { .caller = &caller_root, .template = "host", .runtime = runtime };

    /* An open network is the weakest wall that a sandbox can have. */
    spec.network = &open;
    if (sandbox_create(host, &spec, ret, err) == 0)
        return 0;
    spec.network = NULL;
    return sandbox_create(host, &spec, ret, err);
}

/* The attempts of one sandbox against another of the same runtime; the control is made in the
 * other one itself. */
static int between_try(struct trial *trial, int runtime, struct sandbox *attacker,
                       struct sandbox *neighbour, struct err *err)
{
    cleanup_with(buf_done) struct buf inside = BUF_INIT(PROOF_OUTPUT_MAX),
                                      outside = BUF_INIT(PROOF_OUTPUT_MAX);
    struct prove_guest guard;
    int r = prove_inside_start(neighbour, &trial->program, "guard", "/workspace", &guard, err);

    if (r < 0)
        return err_wrap(err, "the other sandbox");
    r = prove_inside(neighbour, &trial->program, "between-outside", guard.line, &outside, err);
    if (r == 0)
        r = prove_inside(attacker, &trial->program, "between-inside", guard.line, &inside, err);
    prove_inside_stop(guard.process);
    if (r < 0)
        return r;
    proofs_read(trial->proofs, BETWEEN, (struct proof_place){ true, runtime },
                outside.data ? outside.data : "");
    proofs_read(trial->proofs, BETWEEN, (struct proof_place){ false, runtime },
                inside.data ? inside.data : "");
    return 0;
}

static int sandboxes_try(struct trial *trial, struct host *host, int runtime, struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(PROOF_OUTPUT_MAX);
    const char *name = trial->proofs->runtimes[runtime].name;
    struct sandbox *attacker = NULL, *neighbour = NULL;
    struct err ignored;
    int r = sandbox_make(host, name, &attacker, err);

    if (r == 0)
        r = sandbox_make(host, name, &neighbour, err);
    if (r == 0)
        r = prove_inside(attacker, &trial->program, "inside", trial->guard.line, &output, err);
    if (r == 0) {
        proofs_read(trial->proofs, "", (struct proof_place){ false, runtime },
                    output.data ? output.data : "");
        r = prove_links(trial->proofs, runtime, attacker, &trial->program, trial->guard.line, err);
    }
    if (r == 0)
        r = between_try(trial, runtime, attacker, neighbour, err);
    if (attacker) {
        (void)sandbox_destroy(attacker, &ignored);
        sandbox_unref(attacker);
    }
    if (neighbour) {
        (void)sandbox_destroy(neighbour, &ignored);
        sandbox_unref(neighbour);
    }
    return r;
}

/* Opens a host of its own: what is proven is this program, not a daemon that runs already. */
static int runtime_try(struct trial *trial, int runtime, struct err *err)
{
    struct config config = *trial->config;
    struct host *host;
    int r;

    config.state = trial->state;
    config.run = trial->run;
    config.runtime = (char *)(uintptr_t)trial->proofs->runtimes[runtime].name;
    config.runtime_allow = (char *)(uintptr_t) "all";
    config.runtime_min = (char *)(uintptr_t) "native";
    config.pool_size = 0;
    config.owners = (struct owner_settings){ .items = NULL };
    r = host_open(&config, NULL, &host, err);
    if (r < 0)
        return r;
    r = sandboxes_try(trial, host, runtime, err);
    host_close(host);
    return r;
}

static int outside_try(struct trial *trial, struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(PROOF_OUTPUT_MAX);
    const char *const args[] = { trial->program.path, "outside", trial->guard.line, NULL };
    struct command_result result = { 0 };
    int r = command_run(args, OUTSIDE_MS, &output, &result);

    if (r < 0)
        return err_sys(err, r, "run holt-prove");
    if (result.status != 0)
        return err_set(err, ERR_INTERNAL, "holt-prove failed: %.160s", result.stderr_text);
    proofs_read(trial->proofs, "", (struct proof_place){ true, PROOF_EVERY },
                output.data ? output.data : "");
    return prove_links_outside(trial->proofs, &trial->program, trial->guard.line, err);
}

/* Makes the directories beside the state directory, on the same filesystem. */
static int trial_open(struct trial *trial, struct err *err)
{
    char *slash;
    int r = prove_program_load(&trial->program, err);

    if (r < 0)
        return r;
    trial->dir = xasprintf("%s", trial->config->state);
    slash = strrchr(trial->dir, '/');
    *(slash ? slash : trial->dir) = '\0';
    r = *trial->dir ? tree_make(trial->dir, 0755) : 0;
    if (r < 0)
        return err_sys(err, r, "create %s", trial->dir);
    slash = trial->dir;
    trial->dir = xasprintf("%s/.holt-prove-XXXXXX", slash);
    free(slash);
    if (!mkdtemp(trial->dir))
        return err_sys(err, -errno, "create %s", trial->dir);
    trial->state = xasprintf("%s/state", trial->dir);
    trial->run = xasprintf("%s/run", trial->dir);
    trial->canaries = xasprintf("%s/host", trial->dir);
    r = tree_make(trial->state, 0700);
    if (r == 0)
        r = tree_make(trial->run, 0700);
    if (r == 0)
        r = tree_make(trial->canaries, 0700);
    if (r < 0)
        return err_sys(err, r, "create directories in %s", trial->dir);
    return prove_helper_start(trial->program.path, "guard", trial->canaries, &trial->guard, err);
}

static void trial_close(struct trial *trial)
{
    prove_helper_stop(&trial->guard);
    if (trial->dir)
        (void)tree_remove_at(AT_FDCWD, trial->dir);
    prove_program_done(&trial->program);
    free(trial->dir);
    free(trial->state);
    free(trial->run);
    free(trial->canaries);
}

/* A runtime whose programs are missing is left out; one that breaks in between has not held. */
static void runtimes_try(struct trial *trial)
{
    struct proofs *proofs = trial->proofs;
    const struct runtime_ops *ops;

    for (size_t i = 0; i < PROOF_RUNTIMES_MAX && (ops = runtime_at(i)); i++) {
        struct proof_runtime *runtime = &proofs->runtimes[proofs->runtime_count++];
        struct err err = { 0 };

        runtime->name = ops->name;
        runtime->works = ops->probe(&err) == 0;
        runtime->breaks = runtime->works && runtime_try(trial, (int)i, &err) < 0;
        (void)snprintf(runtime->problem, sizeof(runtime->problem), "%s",
                       runtime->works && !runtime->breaks ? "" : err.msg);
    }
}

int prove_run(const struct config *config, bool as_json, FILE *out)
{
    cleanup_free struct proofs *proofs = xcalloc(1, sizeof(*proofs));
    struct trial trial = { .config = config, .proofs = proofs };
    struct err err = { 0 };
    bool all_held = false;
    int r = trial_open(&trial, &err);

    if (r == 0)
        r = outside_try(&trial, &err);
    if (r == 0)
        runtimes_try(&trial);
    trial_close(&trial);
    if (r < 0) {
        (void)fprintf(stderr, "holtd: %s\n", err.msg);
        return STATUS_FAILED;
    }
    all_held = proofs_judge(proofs);
    if (as_json)
        proofs_print_json(proofs, all_held, out);
    else
        proofs_print(proofs, out);
    return all_held ? 0 : 1;
}
