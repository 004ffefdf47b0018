// SPDX-License-Identifier: Apache-2.0
/* Templates that clients of E2B build: named first, then begun with their steps, then followed. */
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "builder/build.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_owner.h"
#include "e2b/template/build.h"
#include "e2b/template/image.h"
#include "e2b/template/tag.h"
#include "e2b/template/template_ref.h"
#include "host/core/reactor.h"
#include "http/exchange.h"

enum {
    CPUS_MAX = 1024,
    MEMORY_MIN_MB = 128,
    MEMORY_MAX_MB = 64 << 20,
    LOGS_PER_ANSWER = 100,
};

static struct e2b_builds *builds_of(const struct e2b_request *request)
{
    return request->e2b->builds;
}

static json_t *template_new(const char *id, const char *name)
{
    return json_pack("{s:s, s:s, s:b, s:o, s:o, s:{}, s:{}}", "id", id, "name", name, "public",
                     false, "createdAt", json_time(clock_wall_ms()), "updatedAt",
                     json_time(clock_wall_ms()), "tags", "builds");
}

/* What stands behind the name, what stands beside it, or else the usual one. */
static int tags_of(const json_t *body, const char *tag, json_t **ret, struct err *err)
{
    cleanup_json json_t *tags = json_array();
    const json_t *more = NULL, *each;
    size_t i;
    int r = json_get_array(body, "tags", &more, err);

    if (r < 0)
        return r;
    if (*tag)
        (void)json_array_append_new(tags, json_string(tag));
    json_array_foreach(more, i, each) {
        if (!e2b_tag_is_valid(json_string_value(each)))
            return err_set(err, ERR_INVALID, "invalid tag");
        (void)json_array_append(tags, (json_t *)(uintptr_t)each);
    }
    if (json_array_size(tags) == 0)
        (void)json_array_append_new(tags, json_string(E2B_TAG_DEFAULT));
    *ret = TAKE_PTR(tags);
    return 0;
}

/* Resources of a build; the template reports those of its last build. */
static int size_take(const json_t *body, json_t *template, json_t *build, struct err *err)
{
    uint32_t cpus = E2B_CPUS_DEFAULT, memory_mb = E2B_MEMORY_DEFAULT_MB;

    if (json_get_u32(body, "cpuCount", &cpus, err) < 0 ||
        json_get_u32(body, "memoryMB", &memory_mb, err) < 0)
        return err_wrap(err, "template");
    if (cpus < 1 || cpus > CPUS_MAX)
        return err_set(err, ERR_INVALID, "cpuCount is not between 1 and %d", CPUS_MAX);
    if (memory_mb < MEMORY_MIN_MB || memory_mb > MEMORY_MAX_MB)
        return err_set(err, ERR_INVALID, "memoryMB is not between %d and %d", MEMORY_MIN_MB,
                       MEMORY_MAX_MB);
    (void)json_object_set_new(template, "cpuCount", json_integer(cpus));
    (void)json_object_set_new(template, "memoryMB", json_integer(memory_mb));
    (void)json_object_set_new(build, "cpuCount", json_integer(cpus));
    (void)json_object_set_new(build, "memoryMB", json_integer(memory_mb));
    return 0;
}

/* A build that waits for its steps. */
struct begun {
    const json_t *body, *tags;
    const char *build;
};

static int build_add(json_t *template, void *context, struct err *err)
{
    const struct begun *begun = context;
    json_t *build;

    if (json_object_size(json_object_get(template, "tags")) + json_array_size(begun->tags) >
        E2B_TAGS_MAX)
        return err_set(err, ERR_INVALID, "a template has at most %d tags", E2B_TAGS_MAX);
    build = json_pack("{s:s, s:O, s:o}", "status", "waiting", "tags", begun->tags, "createdAt",
                      json_time(clock_wall_ms()));
    (void)json_object_set_new(json_object_get(template, "builds"), begun->build, build);
    return size_take(begun->body, template, build, err);
}

/* The template with this name, and a build of it. */
static int create(struct e2b_request *request, json_t **ret_template, char build[E2B_ID_BYTES],
                  json_t **ret_tags, struct err *err)
{
    char name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_NAME_MAX + 1], id[E2B_ID_BYTES];
    cleanup_json json_t *new = NULL, *tags = NULL;
    struct begun begun = { .body = request->body, .build = build };
    const char *asked = "";
    int r = json_get_text(request->body, "name", &asked, err);

    if (r == 0 && *asked == '\0')
        r = json_get_text(request->body, "alias", &asked, err);
    if (r == 0)
        r = e2b_tag_split(asked, name, tag, err);
    if (r == 0)
        r = tags_of(request->body, tag, &tags, err);
    if (r == 0)
        r = e2b_id_new(build, err);
    if (r == 0)
        r = e2b_id_new(id, err);
    if (r < 0)
        return r;
    new = template_new(id, name);
    e2b_object_own(new, &request->exchange->caller);
    begun.tags = tags;
    r = e2b_builds_change(builds_of(request),
                          &(struct e2b_template_word){ &request->exchange->caller, name }, new,
                          build_add, &begun, err);
    if (r < 0)
        return r;
    *ret_template = e2b_builds_find(builds_of(request), &request->exchange->caller, name);
    *ret_tags = TAKE_PTR(tags);
    return *ret_template ? 0 : err_set(err, ERR_NOT_FOUND, "template '%s' was deleted", name);
}

static enum MHD_Result create_answer(struct e2b_request *request)
{
    cleanup_json json_t *template = NULL, *tags = NULL;
    char build[E2B_ID_BYTES];
    struct err err = { 0 };

    if (create(request, &template, build, &tags, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(
        request, MHD_HTTP_ACCEPTED,
        json_pack("{s:O, s:o, s:O, s:[O], s:O, s:[O]}", "templateID",
                  json_object_get(template, "id"), "buildID", e2b_build_uuid_json(build), "public",
                  json_object_get(template, "public"), "names", json_object_get(template, "name"),
                  "tags", tags, "aliases", json_object_get(template, "name")));
}

/* One of both; neither means the usual image. */
static int origin_find(const struct e2b_request *request, struct e2b_template_ref *ret,
                       char notice[E2B_IMAGE_NOTICE_BYTES], struct err *err)
{
    const char *template = "", *image = "";

    notice[0] = '\0';
    if (json_get_text(request->body, "fromTemplate", &template, err) < 0 ||
        json_get_text(request->body, "fromImage", &image, err) < 0)
        return err_wrap(err, "build");
    return *template ? e2b_template_find(request, template, ret, err)
                     : e2b_image_find(request, *image ? image : "e2bdev/base", ret, notice, err);
}

static int build(const struct e2b_request *request, struct err *err)
{
    struct build_spec spec = { .caller = &request->exchange->caller,
                               .start_command = "",
                               .ready_command = "" };
    const struct e2b_template_word word = { &request->exchange->caller, request->params[0] };
    char notice[E2B_IMAGE_NOTICE_BYTES], id[E2B_ID_BYTES];
    struct e2b_template_ref from;
    int r = origin_find(request, &from, notice, err);

    if (r < 0)
        return r;
    spec.from = from.name;
    spec.notice = *notice ? notice : NULL;
    if (json_get_array(request->body, "steps", &spec.steps, err) < 0 ||
        json_get_bool(request->body, "force", &spec.is_forced, err) < 0 ||
        json_get_text(request->body, "startCmd", &spec.start_command, err) < 0 ||
        json_get_text(request->body, "readyCmd", &spec.ready_command, err) < 0)
        return err_wrap(err, "build");
    e2b_build_parse(request->params[1], id);
    return e2b_builds_begin(builds_of(request), &word, id, &spec, err);
}

static enum MHD_Result build_answer(struct e2b_request *request)
{
    struct err err = { 0 };

    if (build(request, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_ACCEPTED);
}

static json_t *reason_of(const json_t *build)
{
    const char *step = json_string_value(json_object_get(build, "step"));

    if (!json_object_get(build, "message"))
        return NULL;
    return json_pack("{s:O, s:s*, s:[]}", "message", json_object_get(build, "message"), "step",
                     step && *step ? step : NULL, "logEntries");
}

static json_t *lines_of(const json_t *entries)
{
    json_t *lines = json_array();
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
        (void)json_array_append(lines, json_object_get(entry, "message"));
    return lines;
}

static enum MHD_Result status(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(builds_of(request), &request->exchange->caller, request->params[0]);
    const char *offset = e2b_query(request, "logsOffset");
    const json_t *found;
    char id[E2B_ID_BYTES];
    json_t *entries, *state;
    uint64_t from = 0;
    bool waits = false;

    e2b_build_parse(request->params[1], id);
    found = json_object_get(json_object_get(template, "builds"), id);
    if (!template || !found)
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "build '%.40s' not found",
                               request->params[1]);
    if (offset && parse_u64(offset, &from) < 0)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "logsOffset is not a number");
    entries = e2b_builds_logs(builds_of(request), id, from, LOGS_PER_ANSWER, &waits);
    state = waits ? json_string("waiting") : json_incref(json_object_get(found, "status"));
    return e2b_reply_json(
        request, MHD_HTTP_OK,
        json_pack("{s:O, s:o, s:o, s:o, s:o, s:o*}", "templateID", json_object_get(template, "id"),
                  "buildID", e2b_build_uuid_json(id), "status", state, "logs", lines_of(entries),
                  "logEntries", entries, "reason", reason_of(found)));
}

static const struct e2b_route routes[] = {
    { "POST", "/v3/templates", .answer = create_answer },
    { "POST", "/v2/templates", .answer = create_answer },
    { "POST", "/v2/templates/{}/builds/{}", .answer = build_answer },
    { "GET", "/templates/{}/builds/{}/status", .answer = status },
};

const struct e2b_routes e2b_template_build_routes = { routes, ARRAY_SIZE(routes) };
