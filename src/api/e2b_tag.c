// SPDX-License-Identifier: Apache-2.0
#include "api/e2b_tag.h"

#include <stdio.h>
#include <string.h>

#include "api/e2b.h"
#include "api/e2b_build.h"
#include "api/e2b_shelf.h"
#include "api/exchange.h"
#include "api/exchange_internal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/parse.h"
#include "host/reactor.h"

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
    json_array_foreach(tags, i, tag) if (!e2b_tag_is_valid(json_string_value(tag))) return err_set(
        err, ERR_INVALID, "invalid tag");
    return 0;
}

/* The template that a field of the body names, with the tags to be changed. */
static int target_find(struct e2b_request *request, const char *field, json_t **ret_template,
                       char tag[TEMPLATE_NAME_MAX + 1], const json_t **ret_tags, struct err *err)
{
    char name[TEMPLATE_NAME_MAX + 1];
    const char *asked = "";
    int r = json_get_text(request->body, field, &asked, err);

    if (r == 0)
        r = e2b_tag_split(asked, name, tag, err);
    if (r == 0)
        r = json_get_array(request->body, "tags", ret_tags, err);
    if (r == 0)
        r = tags_check(*ret_tags, err);
    if (r < 0)
        return r;
    *ret_template = e2b_builds_find(request->exchange->listener->builds, name);
    return *ret_template ? 0 : err_set(err, ERR_NOT_FOUND, "template '%s' not found", name);
}

static int store(struct e2b_request *request, const json_t *template, struct err *err)
{
    return e2b_shelf_put(request->exchange->listener->shelf, SHELF_TEMPLATES, template, NULL, err);
}

static enum MHD_Result assign(struct e2b_request *request)
{
    cleanup_json json_t *template = NULL;
    char tag[TEMPLATE_NAME_MAX + 1] = "";
    const json_t *tags = NULL, *each;
    struct err err = { 0 };
    const char *build;
    size_t i;

    if (target_find(request, "target", &template, tag, &tags, &err) < 0)
        return e2b_reply_err(request, &err);
    build = e2b_tag_build(template, tag);
    if (!build)
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "tag '%s' not found",
                               *tag ? tag : E2B_TAG_DEFAULT);
    json_array_foreach(tags, i, each)(void) json_object_set_new(
        json_object_get(template, "tags"), json_string_value(each),
        json_pack("{s:s, s:o}", "build", build, "createdAt", json_time(clock_wall_ms())));
    if (store(request, template, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_CREATED,
                          json_pack("{s:s, s:O}", "buildID", build, "tags", tags));
}

static enum MHD_Result remove_tags(struct e2b_request *request)
{
    cleanup_json json_t *template = NULL;
    char tag[TEMPLATE_NAME_MAX + 1];
    const json_t *tags = NULL, *each;
    struct err err = { 0 };
    size_t i;

    if (target_find(request, "name", &template, tag, &tags, &err) < 0)
        return e2b_reply_err(request, &err);
    json_array_foreach(tags, i, each) if (json_object_del(json_object_get(template, "tags"),
                                                          json_string_value(each)) <
                                          0) return e2b_reply_error(request, MHD_HTTP_NOT_FOUND,
                                                                    "tag '%s' not found",
                                                                    json_string_value(each));
    if (store(request, template, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *template =
        e2b_builds_find(request->exchange->listener->builds, request->params[0]);
    json_t *all, *each;
    const char *tag;

    if (!template)
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found",
                               request->params[0]);
    all = json_array();
    json_object_foreach(json_object_get(template, "tags"), tag, each)(void) json_array_append_new(
        all, json_pack("{s:s, s:O, s:O}", "tag", tag, "buildID", json_object_get(each, "build"),
                       "createdAt", json_object_get(each, "createdAt")));
    return e2b_reply_json(request, MHD_HTTP_OK, all);
}

static const struct e2b_route routes[] = {
    { "POST", "/templates/tags", .answer = assign },
    { "DELETE", "/templates/tags", .answer = remove_tags },
    { "GET", "/templates/{}/tags", .answer = list },
};

const struct e2b_routes e2b_tag_routes = { routes, ARRAY_SIZE(routes) };
