// SPDX-License-Identifier: Apache-2.0
/* The control API: snapshots. They hold files, not memory. A snapshot outlives its sandbox and is
 * the source of others, so it is a template named snapshot-HEX. The object store has its name and
 * origin. The object is stored first, in state "making", so that a killed daemon leaves no unknown
 * template. A snapshot deleted while a sandbox uses it disappears for clients at once; its template
 * is removed later. */
#include "e2b/control/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/control/volume.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/object_owner.h"
#include "e2b/core/object_store.h"
#include "e2b/core/page.h"
#include "e2b/core/ref.h"
#include "e2b/template/build.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/reactor.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

#define TAG ":default"

static struct e2b_objects *objects_of(const struct e2b_request *request)
{
    return request->e2b->objects;
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
    cleanup_json json_t *built = NULL;
    struct template_record found;
    struct err ignored;

    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "'%.60s' is not a name: lower-case letters, digits, '.', '_' and '-'", name);
    built = e2b_builds_find(request->e2b->builds, &request->exchange->caller, name);
    if (!built &&
        owned_template_find(request->host, &request->exchange->caller, name, &found, &ignored) < 0)
        return 0;
    return err_set(err, ERR_EXISTS, "there is a template '%s'", name);
}

static bool has(const json_t *stored, const char *mark)
{
    return json_is_true(json_object_get(stored, mark));
}

static void forget(json_t *stored)
{
    (void)json_object_del(stored, "name");
    (void)json_object_del(stored, "making");
    (void)json_object_set_new(stored, "deleted", json_true());
}

/* Templates that were in use when their snapshots were deleted. */
static void sweep(struct host *host, struct e2b_objects *objects)
{
    cleanup_json json_t *list = e2b_objects_list(objects, OBJECTS_SNAPSHOTS);
    struct err ignored;
    size_t index;
    json_t *stored;

    json_array_foreach(list, index, stored) {
        const char *id = json_string_value(json_object_get(stored, "id"));

        if (has(stored, "deleted") &&
            (host_remove_template(host, id, &ignored) == 0 || ignored.kind == ERR_NOT_FOUND))
            (void)e2b_objects_remove(objects, OBJECTS_SNAPSHOTS, id, &ignored);
    }
}

/* The snapshot of this name among those of the owner. */
static json_t *owned_pick(const json_t *list, const char *owner, const char *name)
{
    json_t *stored;
    size_t index;

    json_array_foreach(list, index, stored) {
        const char *own = json_string_value(json_object_get(stored, "name"));

        if (own && strcmp(own, name) == 0 && strcmp(e2b_object_owner(stored), owner) == 0)
            return stored;
    }
    return NULL;
}

/* Its template is there. A name that is used again moves to the new snapshot. */
static int finish_in(json_t *list, void *context, struct err *err)
{
    cleanup_json json_t *copy = NULL;
    const json_t *made = context;
    const char *name = json_string_value(json_object_get(made, "name"));
    json_t *stored = e2b_objects_pick(list, "id", json_string_value(json_object_get(made, "id")));
    json_t *old = name ? owned_pick(list, e2b_object_owner(made), name) : NULL;

    if (!stored)
        return err_set(err, ERR_NOT_FOUND, "the snapshot is gone");
    if (old)
        forget(old);
    (void)json_object_del(stored, "making");
    copy = json_deep_copy(made); /* the list is valid only under the lock */
    return json_object_update(stored, copy);
}

/* Says under which id. */
static int snapshot_make(struct e2b_request *request, const char *name, json_t **ret,
                         struct err *err)
{
    cleanup_json json_t *making = NULL;
    char id[TEMPLATE_NAME_MAX + 1];
    struct template_info info;
    struct err ignored;
    int r = make_id(id, err);

    if (r == 0 && name)
        r = name_check(request, name, err);
    if (r < 0)
        return r;
    *ret = json_pack("{s:s, s:s*, s:s, s:I}", "id", id, "name", name, "sandbox", request->params[0],
                     "createdMs", (json_int_t)clock_wall_ms());
    e2b_object_own(*ret, &request->exchange->caller);
    e2b_volume_remember(request->sandbox, *ret);
    making = json_pack("{s:s, s:s, s:b}", "id", id, "sandbox", request->params[0], "making", 1);
    r = e2b_objects_put(objects_of(request), OBJECTS_SNAPSHOTS, making, NULL, err);
    if (r < 0)
        return r;
    r = owned_template_reserve_internal(request->host, request->exchange->caller.owner, id, err);
    if (r == 0) {
        r = sandbox_commit(request->sandbox, id, &info, err);
        if (r < 0)
            owned_template_release(request->host, id);
    }
    if (r == 0) {
        r = e2b_objects_change(objects_of(request), OBJECTS_SNAPSHOTS, finish_in, *ret, err);
        if (r < 0)
            (void)host_remove_template(request->host, id, &ignored);
    }
    if (r < 0)
        (void)e2b_objects_remove(objects_of(request), OBJECTS_SNAPSHOTS, id, &ignored);
    else
        sweep(request->host, objects_of(request));
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

struct deletion {
    const struct caller *caller;
    const char *asked;
};

/* By name or id, with a namespace in front or a tag behind. */
static int delete_in(json_t *list, void *context, struct err *err)
{
    const struct deletion *deletion = context;
    const char *asked = deletion->asked, *slash = strrchr(asked, '/');
    char word[TEMPLATE_NAME_MAX + 1];
    json_t *stored;

    asked = slash ? slash + 1 : asked;
    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(asked, ":"), asked);
    stored = e2b_object_pick(list, deletion->caller, "name", word);
    if (!stored)
        stored = e2b_object_pick(list, deletion->caller, "id", word);
    if (!stored || has(stored, "deleted") || has(stored, "making"))
        return err_set(err, ERR_NOT_FOUND, "snapshot '%.100s' not found", asked);
    forget(stored);
    return 0;
}

int e2b_snapshot_delete(struct e2b_request *request, const char *word, struct err *err)
{
    struct deletion deletion = { &request->exchange->caller, word };
    int r = e2b_objects_change(objects_of(request), OBJECTS_SNAPSHOTS, delete_in, &deletion, err);

    if (r == 0)
        sweep(request->host, objects_of(request));
    return r;
}

/* Clients list snapshots as templates, with a namespace that is not percent-encoded. */
static enum MHD_Result delete_spaced(struct e2b_request *request)
{
    struct err err = { 0 };

    if (e2b_snapshot_delete(request, request->params[0] ? request->params[0] : "", &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

int e2b_snapshots_recover(struct host *host, struct e2b_objects *objects, struct err *err)
{
    cleanup_json json_t *list = e2b_objects_list(objects, OBJECTS_SNAPSHOTS);
    size_t index;
    json_t *stored;
    int r = 0;

    json_array_foreach(list, index, stored) {
        if (r < 0 || !has(stored, "making"))
            continue;
        forget(stored);
        r = e2b_objects_put(objects, OBJECTS_SNAPSHOTS, stored, NULL, err);
    }
    if (r == 0)
        sweep(host, objects);
    return r;
}

struct filter {
    const struct caller *caller;
    const char *sandbox, *name; /* NULL: any */
};

static json_t *item_json(const json_t *stored, const void *context)
{
    const struct filter *filter = context;
    const char *from = json_string_value(json_object_get(stored, "sandbox"));
    const char *own = json_string_value(json_object_get(stored, "name"));
    size_t len = filter->name ? strcspn(filter->name, ":") : 0;
    bool is_wanted = !has(stored, "deleted") && !has(stored, "making") &&
                     e2b_object_is_seen(stored, filter->caller);

    if (is_wanted && filter->sandbox)
        is_wanted = strcmp(filter->sandbox, from) == 0;
    if (is_wanted && filter->name)
        is_wanted = own && strlen(own) == len && strncmp(own, filter->name, len) == 0;
    return is_wanted ? snapshot_json(stored) : NULL;
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *all = e2b_objects_list(objects_of(request), OBJECTS_SNAPSHOTS);
    const struct filter filter = { .caller = &request->exchange->caller,
                                   .sandbox = e2b_query(request, "sandboxID"),
                                   .name = e2b_query(request, "name") };
    struct e2b_page page;
    struct err err = { 0 };

    if (e2b_page_parse(request, &page, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK,
                          e2b_page_list(request, &page, all, true, item_json, &filter));
}

static const struct e2b_route routes[] = {
    { "POST", "/sandboxes/{}/snapshots", .answer = create },
    { "GET", "/snapshots", .answer = list },
    { "DELETE", "/templates/*", .answer = delete_spaced },
};

const struct e2b_routes e2b_snapshot_routes = { routes, ARRAY_SIZE(routes) };
