// SPDX-License-Identifier: Apache-2.0
/* The control API: forks of a sandbox, which carry files, not memory. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/control/sandbox_request.h"
#include "e2b/control/start.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/ref.h"
#include "e2b/core/wake.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

enum { FORKS_MAX = 100 };

/* One of several forks made by one request: a sandbox, or its own error. */
struct fork {
    struct sandbox *sandbox; /* NULL: it failed */
    json_t *metadata;
    char *text; /* of the metadata */
    struct err err;
};

/* Copies the original's metadata, with a new timeout and new tokens. */
static int metadata_make(struct fork *fork, const json_t *original, uint64_t timeout_s,
                         struct err *err)
{
    int r;

    fork->metadata = json_deep_copy(original);
    (void)json_object_set_new(fork->metadata, "timeout", json_integer((json_int_t)timeout_s));
    r = e2b_metadata_add_tokens(fork->metadata, err);
    return r == 0 ? e2b_metadata_print(fork->metadata, &fork->text, err) : r;
}

/* All at once, so that they are alike. Where that cannot be, as many as can be: those after the
 * first have its files, which nothing has written to yet. The number of them. */
static size_t forks_make(const struct e2b_request *request, struct fork *forks, size_t count)
{
    struct sandbox *const original = request->sandbox;
    struct sandbox *made[FORKS_MAX], *source = original;
    const char *metadata_list[FORKS_MAX];
    struct fork_spec spec = { .caller = &request->exchange->caller,
                              .count = count,
                              .metadata_list = metadata_list };
    struct err err = { 0 };
    size_t stand = 0;

    for (size_t i = 0; i < count; i++)
        metadata_list[i] = forks[i].text;
    if (sandbox_fork(original, &spec, made, &err) == 0) {
        for (size_t i = 0; i < count; i++)
            forks[i].sandbox = made[i];
        return count;
    }
    for (size_t i = 0; i < count; i++) {
        spec.count = 1;
        spec.metadata_list = &metadata_list[i];
        if (sandbox_fork(source, &spec, &forks[i].sandbox, &forks[i].err) < 0)
            continue;
        stand++;
        source = source == original ? forks[i].sandbox : source;
    }
    return stand;
}

static void fork_fail(struct fork *fork)
{
    struct err ignored;

    (void)sandbox_destroy(fork->sandbox, &ignored);
    sandbox_unref(fork->sandbox);
    fork->sandbox = NULL;
}

/* What the template starts is begun in all of them before the first is waited for. */
static void forks_start(const struct e2b_request *request, struct fork *forks, size_t count,
                        uint64_t timeout_s)
{
    for (size_t i = 0; i < count; i++) {
        struct fork *fork = &forks[i];

        if (fork->sandbox &&
            (e2b_set_timeout(fork->sandbox, fork->metadata, timeout_s, &fork->err) < 0 ||
             e2b_start_begin(request->host, fork->sandbox, fork->metadata, &fork->err) < 0))
            fork_fail(fork);
    }
    for (size_t i = 0; i < count; i++) {
        struct fork *fork = &forks[i];

        if (fork->sandbox && e2b_start_await(request->host, fork->sandbox, fork->metadata,
                                             request->connection_fd, &fork->err) < 0)
            fork_fail(fork);
    }
}

static json_t *fork_json(const struct e2b_request *request, const struct fork *fork)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    if (!fork->sandbox)
        return json_pack("{s:{s:i, s:o}}", "error", "code", (int)e2b_status_of(&fork->err),
                         "message", json_text(fork->err.msg));
    sandbox_get_info(fork->sandbox, false, &info);
    return json_pack("{s:o}", "sandbox", e2b_sandbox_json(request, &info, fork->metadata));
}

static void forks_free(struct fork *forks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sandbox_unref(forks[i].sandbox);
        json_decref(forks[i].metadata);
        free(forks[i].text);
    }
    free(forks);
}

/* NULL where none stands: the first then says why. */
static json_t *forks_json(const struct e2b_request *request, const struct fork *forks, size_t count)
{
    json_t *array = json_array();
    size_t stand = 0;

    for (size_t i = 0; i < count; i++) {
        stand += forks[i].sandbox != NULL;
        (void)json_array_append_new(array, fork_json(request, &forks[i]));
    }
    if (stand > 0)
        return array;
    json_decref(array);
    return NULL;
}

static int fork_parse(const struct e2b_request *request, uint64_t *timeout_s, uint32_t *count,
                      struct err *err)
{
    const json_t *value = json_object_get(request->body, "count");
    int r = e2b_timeout_parse(request->body, "timeout", timeout_s, err);

    if (r < 0 || !value || json_is_null(value))
        return r;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > FORKS_MAX)
        return err_set(err, ERR_INVALID, "count must be from 1 to %d", FORKS_MAX);
    *count = (uint32_t)json_integer_value(value);
    return 0;
}

static enum MHD_Result fork_answer(struct e2b_request *request)
{
    uint64_t timeout_s = E2B_TIMEOUT_DEFAULT_S;
    uint32_t count = 1;
    struct err err = { 0 };
    enum MHD_Result result;
    int r = 0;
    struct fork *forks;
    json_t *answer;

    if (fork_parse(request, &timeout_s, &count, &err) < 0 || e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!e2b_is_active(request->sandbox))
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "sandbox '%s' is not running",
                               request->params[0]);
    request->metadata = e2b_metadata_read(request->sandbox);
    forks = xcalloc(count, sizeof(*forks));
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = metadata_make(&forks[i], request->metadata, timeout_s, &forks[0].err);
    if (r == 0 && forks_make(request, forks, count) > 0)
        forks_start(request, forks, count, timeout_s);
    answer = forks_json(request, forks, count);
    result = answer ? e2b_reply_json(request, MHD_HTTP_CREATED, answer)
                    : e2b_reply_err(request, &forks[0].err);
    forks_free(forks, count);
    return result;
}

static const struct e2b_route routes[] = {
    { "POST", "/sandboxes/{}/fork", .answer = fork_answer },
};

const struct e2b_routes e2b_fork_routes = { routes, ARRAY_SIZE(routes) };
