// SPDX-License-Identifier: Apache-2.0
/* Templates of E2B: what clients have built, and beside it whatever templates this host has. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "builder/build.h"
#include "e2b/control/snapshot.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_owner.h"
#include "e2b/template/build.h"
#include "e2b/template/template_ref.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "http/exchange.h"

static struct e2b_builds *builds_of(const struct e2b_request *request)
{
    return request->e2b->builds;
}

static enum MHD_Result not_found(struct e2b_request *request)
{
    return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found",
                           request->params[0]);
}

/* --- looking -----------------------------------------------------------------------------------
 */

static const char *last_build(const json_t *template, const json_t **ret)
{
    const char *id, *last = "";
    json_t *build;

    *ret = NULL;
    json_object_foreach(json_object_get(template, "builds"), id, build) {
        last = id;
        *ret = build;
    }
    return last;
}

static json_t *template_json(const json_t *template)
{
    const json_t *build = NULL, *state;
    const char *id = last_build(template, &build);

    state = json_object_get(build, "status");
    return json_pack(
        "{s:O, s:o, s:O, s:O, s:i, s:O, s:[O], s:[O], s:O, s:O, s:n, s:n, s:i, s:i, s:s, s:s}",
        "templateID", json_object_get(template, "id"), "buildID", e2b_build_uuid_json(id),
        "cpuCount", json_object_get(template, "cpuCount"), "memoryMB",
        json_object_get(template, "memoryMB"), "diskSizeMB", 0, "public",
        json_object_get(template, "public"), "aliases", json_object_get(template, "name"), "names",
        json_object_get(template, "name"), "createdAt", json_object_get(template, "createdAt"),
        "updatedAt", json_object_get(template, "updatedAt"), "createdBy", "lastSpawnedAt",
        "spawnCount", 0, "buildCount", (int)json_object_size(json_object_get(template, "builds")),
        "envdVersion", E2B_ENVD_VERSION, "buildStatus",
        state ? json_string_value(state) : "waiting");
}

/* Those that are Holt's own doing behind a build or a snapshot have another name here. */
static bool is_behind(const char *name)
{
    return e2b_build_of(name) || build_is_step(name) || strncmp(name, "snapshot-", 9) == 0;
}

static json_t *local_json(const struct template_info *info)
{
    return json_pack("{s:s, s:o, s:i, s:i, s:I, s:b, s:[s], s:[s], s:o, s:o, s:n, s:n, s:i, s:i, "
                     "s:s, s:s}",
                     "templateID", info->name, "buildID", e2b_build_uuid_json(info->name),
                     "cpuCount", E2B_CPUS_DEFAULT, "memoryMB", E2B_MEMORY_DEFAULT_MB, "diskSizeMB",
                     (json_int_t)(info->size_bytes >> 20), "public", true, "aliases", info->name,
                     "names", info->name, "createdAt", json_time((uint64_t)info->created_at * 1000),
                     "updatedAt", json_time((uint64_t)info->created_at * 1000), "createdBy",
                     "lastSpawnedAt", "spawnCount", 0, "buildCount", 1, "envdVersion",
                     E2B_ENVD_VERSION, "buildStatus", "ready");
}

/* Lists Holt's templates that exist for the caller, under the names that their owners gave them. */
static int locals_list(const struct e2b_request *request, struct owned_template **ret,
                       size_t *ret_count, struct err *err)
{
    struct owned_template *list = NULL;
    size_t count = 0, kept = 0;
    int r = owned_template_list(request->host, &request->exchange->caller, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (is_behind(list[i].info.name))
            continue;
        list[kept] = list[i];
        memcpy(list[kept].info.name, list[i].record.name, sizeof(list[kept].info.name));
        kept++;
    }
    *ret_count = kept;
    *ret = list;
    return 0;
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *built = e2b_builds_list(builds_of(request));
    cleanup_free struct owned_template *locals = NULL;
    json_t *all = json_array(), *template;
    struct err err = { 0 };
    size_t count = 0, i;

    json_array_foreach(built, i, template)
        if (e2b_object_is_seen(template, &request->exchange->caller))
            (void)json_array_append_new(all, template_json(template));
    if (locals_list(request, &locals, &count, &err) < 0) {
        json_decref(all);
        return e2b_reply_err(request, &err);
    }
    for (i = 0; i < count; i++)
        (void)json_array_append_new(all, local_json(&locals[i].info));
    return e2b_reply_json(request, MHD_HTTP_OK, all);
}

static json_t *builds_json(const json_t *template)
{
    json_t *list_of = json_array(), *build;
    const char *id;

    json_object_foreach(json_object_get(template, "builds"), id, build)
        (void)json_array_append_new(
            list_of, json_pack("{s:o, s:O, s:O, s:O, s:O, s:O}", "buildID", e2b_build_uuid_json(id),
                               "status", json_object_get(build, "status"), "createdAt",
                               json_object_get(build, "createdAt"), "updatedAt",
                               json_object_get(template, "updatedAt"), "cpuCount",
                               json_object_get(build, "cpuCount"), "memoryMB",
                               json_object_get(build, "memoryMB")));
    return list_of;
}

/* One that no client has built. */
static enum MHD_Result get_local(struct e2b_request *request)
{
    struct template_record found;
    struct template_info info;
    struct err err = { 0 };
    json_t *body;

    if (owned_template_find(request->host, &request->exchange->caller, request->params[0], &found,
                            &err) < 0 ||
        is_behind(found.store_name) ||
        template_get_info(host_store(request->host), found.store_name, &info, &err) < 0)
        return not_found(request);
    memcpy(info.name, found.name, sizeof(info.name));
    body = local_json(&info);
    (void)json_object_set_new(body, "builds", json_array());
    return e2b_reply_json(request, MHD_HTTP_OK, body);
}

static enum MHD_Result get(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(builds_of(request), &request->exchange->caller, request->params[0]);
    json_t *body;

    if (!template)
        return get_local(request);
    body = template_json(template);
    (void)json_object_set_new(body, "builds", builds_json(template));
    return e2b_reply_json(request, MHD_HTTP_OK, body);
}

static enum MHD_Result alias(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(builds_of(request), &request->exchange->caller, request->params[0]);
    struct e2b_template_ref ref;
    struct err err = { 0 };

    if (template)
        return e2b_reply_json(request, MHD_HTTP_OK,
                              json_pack("{s:O, s:O}", "templateID", json_object_get(template, "id"),
                                        "public", json_object_get(template, "public")));
    if (e2b_template_find(request, request->params[0], &ref, &err) < 0)
        return not_found(request);
    return e2b_reply_json(request, MHD_HTTP_OK,
                          json_pack("{s:s, s:b}", "templateID", ref.id, "public", true));
}

/* --- changing, removing ------------------------------------------------------------------------
 */

static int publish(json_t *template, void *context, struct err *err)
{
    bool is_public = false;

    if (json_get_bool(context, "public", &is_public, err) < 0)
        return err_wrap(err, "template");
    return json_object_set_new(template, "public", json_boolean(is_public));
}

static enum MHD_Result patch(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(builds_of(request), &request->exchange->caller, request->params[0]);
    const struct e2b_template_word word = { &request->exchange->caller, request->params[0] };
    struct err err = { 0 };

    if (e2b_builds_change(builds_of(request), &word, NULL, publish, request->body, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK,
                          json_pack("{s:[O]}", "names", json_object_get(template, "name")));
}

static enum MHD_Result remove_answer(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(builds_of(request), &request->exchange->caller, request->params[0]);
    struct err err = { 0 };
    int r = template ? e2b_builds_remove(builds_of(request),
                                         json_string_value(json_object_get(template, "id")), &err)
                     : e2b_snapshot_delete(request, request->params[0], &err);

    return r < 0 ? e2b_reply_err(request, &err) : e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static const struct e2b_route routes[] = {
    { "GET", "/templates/aliases/{}", .answer = alias },
    { "GET", "/templates", .answer = list },
    { "GET", "/v2/templates", .answer = list },
    { "GET", "/templates/{}", .answer = get },
    { "PATCH", "/v2/templates/{}", .answer = patch },
    { "PATCH", "/templates/{}", .answer = patch },
    { "DELETE", "/templates/{}", .answer = remove_answer },
};

const struct e2b_routes e2b_template_routes = { routes, ARRAY_SIZE(routes) };
