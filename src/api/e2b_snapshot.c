// SPDX-License-Identifier: Apache-2.0
/* The control API: snapshots and forks. Both carry files, not memory.
 *
 * A snapshot outlives its sandbox and others are made from it, so it is a template of Holt's, named
 * snapshot-HEX; the shelf has its name and where it came from. One that is deleted while a sandbox
 * stands on it is gone to clients at once, and its template when that can go. */
#include "api/e2b_snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/e2b.h"
#include "api/e2b_note.h"
#include "api/e2b_page.h"
#include "api/e2b_ref.h"
#include "api/e2b_sandbox_json.h"
#include "api/e2b_sandbox_request.h"
#include "api/e2b_shelf.h"
#include "api/e2b_wake.h"
#include "api/exchange.h"
#include "api/exchange_internal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/parse.h"
#include "host/host.h"
#include "host/reactor.h"
#include "host/sandbox.h"

#define TAG ":default"

enum { FORKS_MAX = 100 };

static struct e2b_shelf *shelf_of(const struct e2b_request *request)
{
    return request->exchange->listener->shelf;
}

/* --- create ----------------------------------------------------------------------------------- */

static json_t *snapshot_json(const json_t *stored)
{
    const char *id = json_string_value(json_object_get(stored, "id"));
    const char *name = json_string_value(json_object_get(stored, "name"));
    char text[TEMPLATE_NAME_MAX + sizeof(TAG)];

    (void)snprintf(text, sizeof(text), "%s" TAG, name ? name : id);
    return json_pack("{s:s, s:[s]}", "snapshotID", text, "names", text);
}

static int make_id(char ret[TEMPLATE_NAME_MAX + 1], struct err *err)
{
    char token[E2B_TOKEN_SIZE];
    int r = e2b_token_make(token, err);

    (void)snprintf(ret, TEMPLATE_NAME_MAX + 1, "snapshot-%.16s", r == 0 ? token : "");
    return r;
}

/* A name of a template is free for a snapshot only if no template has it. */
static int name_check(const struct e2b_request *request, const char *name, struct err *err)
{
    struct template *template;
    struct err ignored;

    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "'%.60s' is not a name: lower-case letters, digits, '.', '_' and '-'", name);
    if (template_open(host_store(request->host), name, &template, &ignored) < 0)
        return 0;
    template_close(template);
    return err_set(err, ERR_EXISTS, "there is a template '%s'", name);
}

/* Says under which id; a name that is used again moves to the new snapshot. */
static int snapshot_make(struct e2b_request *request, const char *name, json_t **ret,
                         struct err *err)
{
    char id[TEMPLATE_NAME_MAX + 1];
    struct template_info info;
    struct err ignored;
    int r = make_id(id, err);

    if (r == 0 && name)
        r = name_check(request, name, err);
    if (r == 0)
        r = sandbox_commit(request->sandbox, id, &info, err);
    if (r < 0)
        return r;
    *ret = json_pack("{s:s, s:s*, s:s, s:I}", "id", id, "name", name, "sandbox", request->params[0],
                     "createdMs", (json_int_t)clock_wall_ms());
    if (name)
        (void)e2b_snapshot_delete(request, name, &ignored);
    r = e2b_shelf_put(shelf_of(request), SHELF_SNAPSHOTS, *ret, name ? "name" : NULL, err);
    if (r < 0)
        (void)host_remove_template(request->host, id, &ignored);
    return r;
}

static enum MHD_Result create(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    const char *name = NULL;
    struct err err = { 0 };

    if (json_get_text(request->body, "name", &name, &err) < 0 || e2b_ref_find(request, &err) < 0 ||
        snapshot_make(request, name && *name ? name : NULL, &stored, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_CREATED, snapshot_json(stored));
}

/* --- delete, list ----------------------------------------------------------------------------- */

static bool is_deleted(const json_t *stored)
{
    return json_is_true(json_object_get(stored, "deleted"));
}

/* Templates that were in use when their snapshots were deleted. */
static void sweep(const struct e2b_request *request)
{
    cleanup_json json_t *list = e2b_shelf_list(shelf_of(request), SHELF_SNAPSHOTS);
    struct err ignored;
    size_t index;
    json_t *stored;

    json_array_foreach(list, index, stored)
    {
        const char *id = json_string_value(json_object_get(stored, "id"));

        if (is_deleted(stored) && (host_remove_template(request->host, id, &ignored) == 0 ||
                                   ignored.kind == ERR_NOT_FOUND))
            (void)e2b_shelf_remove(shelf_of(request), SHELF_SNAPSHOTS, id, &ignored);
    }
}

int e2b_snapshot_delete(struct e2b_request *request, const char *word, struct err *err)
{
    cleanup_json json_t *stored = e2b_shelf_find(shelf_of(request), SHELF_SNAPSHOTS, "name", word);
    int r;

    if (!stored)
        stored = e2b_shelf_find(shelf_of(request), SHELF_SNAPSHOTS, "id", word);
    if (!stored || is_deleted(stored))
        return err_set(err, ERR_NOT_FOUND, "snapshot '%.100s' not found", word);
    (void)json_object_del(stored, "name");
    (void)json_object_set_new(stored, "deleted", json_true());
    r = e2b_shelf_put(shelf_of(request), SHELF_SNAPSHOTS, stored, NULL, err);
    sweep(request);
    return r;
}

/* Clients delete snapshots as templates; what is neither is not there. The path has the name, with
 * a namespace in front or a tag behind. */
static enum MHD_Result delete (struct e2b_request *request) {
    const char *word = request->params[0] ? strrchr(request->params[0], '/') : NULL;
    char name[TEMPLATE_NAME_MAX + 1];
    struct err err = { 0 };

    word = word ? word + 1 : request->params[0];
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word ? word : "", ":"),
                   word ? word : "");
    if (e2b_snapshot_delete(request, name, &err) < 0) return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static bool is_wanted(const json_t *stored, const char *sandbox, const char *name)
{
    const char *from = json_string_value(json_object_get(stored, "sandbox"));
    const char *own = json_string_value(json_object_get(stored, "name"));

    return !is_deleted(stored) && (!sandbox || strcmp(sandbox, from) == 0) &&
           (!name || (own && strncmp(own, name, strcspn(name, ":")) == 0 &&
                      strlen(own) == strcspn(name, ":")));
}

/* Newest first. */
static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *all = e2b_shelf_list(shelf_of(request), SHELF_SNAPSHOTS);
    const char *sandbox = e2b_query(request, "sandboxID"), *name = e2b_query(request, "name");
    const char *last = NULL;
    json_t *array;
    struct e2b_page page;
    struct err err = { 0 };
    bool is_begun;

    if (e2b_page_parse(request, &page, &err) < 0)
        return e2b_reply_err(request, &err);
    array = json_array();
    is_begun = !page.after;
    for (size_t i = json_array_size(all); i-- > 0;) {
        const json_t *stored = json_array_get(all, i);
        const char *id = json_string_value(json_object_get(stored, "id"));

        if (is_begun && is_wanted(stored, sandbox, name)) {
            if (json_array_size(array) == page.limit) {
                e2b_page_more(request, last);
                break;
            }
            (void)json_array_append_new(array, snapshot_json(stored));
            last = id;
        }
        is_begun = is_begun || strcmp(id, page.after) == 0;
    }
    return e2b_reply_json(request, MHD_HTTP_OK, array);
}

/* --- fork ------------------------------------------------------------------------------------- */

/* A fork is what its original is, with a time and tokens of its own. */
static int fork_note(struct sandbox *sandbox, const json_t *original, uint64_t timeout_s,
                     json_t **ret, struct err *err)
{
    json_t *note = json_deep_copy(original);
    int r = e2b_note_add_tokens(note, err);

    *ret = note;
    (void)json_object_set_new(note, "timeout", json_integer((json_int_t)timeout_s));
    if (r == 0)
        r = e2b_note_write(sandbox, note, err);
    return r == 0 ? e2b_set_timeout(sandbox, note, timeout_s, err) : r;
}

static json_t *fork_json(const struct e2b_request *request, struct sandbox *sandbox,
                         uint64_t timeout_s)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_json json_t *note = NULL;
    struct err err = { 0 }, ignored;

    if (fork_note(sandbox, request->note, timeout_s, &note, &err) < 0) {
        (void)sandbox_destroy(sandbox, &ignored);
        return json_pack("{s:{s:i, s:o}}", "error", "code", MHD_HTTP_INTERNAL_SERVER_ERROR,
                         "message", json_text(err.msg));
    }
    sandbox_get_info(sandbox, false, &info);
    return json_pack("{s:o}", "sandbox", e2b_sandbox_json(request, &info, note));
}

static json_t *forks_json(const struct e2b_request *request, struct sandbox **made, size_t count,
                          uint64_t timeout_s)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, fork_json(request, made[i], timeout_s));
        sandbox_unref(made[i]);
    }
    return array;
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
    struct sandbox *made[FORKS_MAX];
    uint64_t timeout_s = E2B_TIMEOUT_DEFAULT_S;
    uint32_t count = 1;
    struct err err = { 0 };

    if (fork_parse(request, &timeout_s, &count, &err) < 0 || e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!e2b_is_awake(request->sandbox))
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "sandbox '%s' is not running",
                               request->params[0]);
    request->note = e2b_note_read(request->sandbox);
    if (sandbox_fork(request->sandbox, NULL, count, made, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_CREATED, forks_json(request, made, count, timeout_s));
}

static const struct e2b_route routes[] = {
    { "POST", "/sandboxes/{}/snapshots", .answer = create },
    { "GET", "/snapshots", .answer = list },
    { "DELETE", "/templates/*", .answer = delete },
    { "POST", "/sandboxes/{}/fork", .answer = fork_answer },
};

const struct e2b_routes e2b_snapshot_routes = { routes, ARRAY_SIZE(routes) };
