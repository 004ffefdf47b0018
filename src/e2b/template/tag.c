// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/tag.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/core/e2b.h"
#include "e2b/template/build.h"
#include "host/core/reactor.h"
#include "http/exchange.h"

bool e2b_tag_is_valid(const char *tag)
{
    return tag && *tag && strlen(tag) <= TEMPLATE_NAME_MAX && !strpbrk(tag, ":/ \t\n");
}

int e2b_tag_split(const char *asked, char name[TEMPLATE_NAME_MAX + 1],
                  char tag[TEMPLATE_NAME_MAX + 1], struct err *err)
{
    const char *slash = strrchr(asked, '/');
    const char *word = slash ? slash + 1 : asked;
    size_t len = strcspn(word, ":");

    tag[0] = '\0';
    if (len == 0 || len > TEMPLATE_NAME_MAX)
        return err_set(err, ERR_INVALID, "'%.100s' is not the name of a template", asked);
    (void)snprintf(name, TEMPLATE_NAME_MAX + 1, "%.*s", (int)len, word);
    if (!is_name(name))
        return err_set(err, ERR_INVALID, "'%.100s' is not the name of a template", asked);
    if (word[len] == '\0')
        return 0;
    if (!e2b_tag_is_valid(word + len + 1))
        return err_set(err, ERR_INVALID, "invalid tag in '%.100s'", asked);
    (void)snprintf(tag, TEMPLATE_NAME_MAX + 1, "%s", word + len + 1);
    return 0;
}

const char *e2b_tag_build(const json_t *template, const char *tag)
{
    const json_t *found =
        json_object_get(json_object_get(template, "tags"), *tag ? tag : E2B_TAG_DEFAULT);

    /* A build can be named by its own id too. */
    if (!found && json_object_get(json_object_get(template, "builds"), tag))
        return tag;
    return json_string_value(json_object_get(found, "build"));
}

static int tags_check(const json_t *tags, struct err *err)
{
    const json_t *tag;
    size_t i;

    if (json_array_size(tags) == 0)
        return err_set(err, ERR_INVALID, "tags are missing");
    json_array_foreach(tags, i, tag)
        if (!e2b_tag_is_valid(json_string_value(tag)))
            return err_set(err, ERR_INVALID, "invalid tag");
    return 0;
}

static int tags_count_check(const json_t *template, struct err *err)
{
    if (json_object_size(json_object_get(template, "tags")) <= E2B_TAGS_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "a template has at most %d tags", E2B_TAGS_MAX);
}

/* A request about a template's tags. */
struct asked {
    char name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_NAME_MAX + 1];
    char build[E2B_ID_BYTES]; /* the id of the build that the tags refer to */
    const json_t *tags;
};

static int asked_get(const struct e2b_request *request, const char *field, struct asked *ret,
                     struct err *err)
{
    const char *word = "";
    int r = json_get_text(request->body, field, &word, err);

    if (r == 0)
        r = e2b_tag_split(word, ret->name, ret->tag, err);
    if (r == 0)
        r = json_get_array(request->body, "tags", &ret->tags, err);
    return r == 0 ? tags_check(ret->tags, err) : r;
}

static int tags_add(json_t *template, void *context, struct err *err)
{
    struct asked *asked = context;
    const char *build = e2b_tag_build(template, asked->tag);
    const json_t *each;
    size_t i;

    if (!build)
        return err_set(err, ERR_NOT_FOUND, "tag '%s' not found",
                       *asked->tag ? asked->tag : E2B_TAG_DEFAULT);
    (void)snprintf(asked->build, sizeof(asked->build), "%s", build);
    json_array_foreach(asked->tags, i, each)
        (void)json_object_set_new(json_object_get(template, "tags"), json_string_value(each),
                                  json_pack("{s:s, s:o}", "build", asked->build, "createdAt",
                                            json_time(clock_wall_ms())));
    return tags_count_check(template, err);
}

static int tags_remove(json_t *template, void *context, struct err *err)
{
    const struct asked *asked = context;
    const json_t *each;
    size_t i;

    json_array_foreach(asked->tags, i, each) {
        const char *tag = json_string_value(each);

        if (json_object_del(json_object_get(template, "tags"), tag) < 0)
            return err_set(err, ERR_NOT_FOUND, "tag '%s' not found", tag);
    }
    return 0;
}

static enum MHD_Result assign(struct e2b_request *request)
{
    struct e2b_builds *builds = request->e2b->builds;
    struct asked asked = { .tags = NULL };
    const struct e2b_template_word word = { &request->exchange->caller, asked.name };
    struct err err = { 0 };

    if (asked_get(request, "target", &asked, &err) < 0 ||
        e2b_builds_change(builds, &word, NULL, tags_add, &asked, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(
        request, MHD_HTTP_CREATED,
        json_pack("{s:o, s:O}", "buildID", e2b_build_uuid_json(asked.build), "tags", asked.tags));
}

static enum MHD_Result remove_tags(struct e2b_request *request)
{
    struct e2b_builds *builds = request->e2b->builds;
    struct asked asked = { .tags = NULL };
    const struct e2b_template_word word = { &request->exchange->caller, asked.name };
    struct err err = { 0 };

    if (asked_get(request, "name", &asked, &err) < 0 ||
        e2b_builds_change(builds, &word, NULL, tags_remove, &asked, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(request->e2b->builds, &request->exchange->caller, request->params[0]);
    json_t *all, *each;
    const char *tag;

    if (!template)
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found",
                               request->params[0]);
    all = json_array();
    json_object_foreach(json_object_get(template, "tags"), tag, each)
        (void)json_array_append_new(
            all, json_pack("{s:s, s:o, s:O}", "tag", tag, "buildID",
                           e2b_build_uuid_json(json_string_value(json_object_get(each, "build"))),
                           "createdAt", json_object_get(each, "createdAt")));
    return e2b_reply_json(request, MHD_HTTP_OK, all);
}

static const struct e2b_route routes[] = {
    { "POST", "/templates/tags", .answer = assign },
    { "DELETE", "/templates/tags", .answer = remove_tags },
    { "GET", "/templates/{}/tags", .answer = list },
};

const struct e2b_routes e2b_tag_routes = { routes, ARRAY_SIZE(routes) };
