// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/template_ref.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_owner.h"
#include "e2b/core/object_store.h"
#include "e2b/template/build.h"
#include "e2b/template/tag.h"
#include "host/core/owned_template.h"
#include "http/exchange.h"

/* Without a namespace in front and a tag behind. */
static bool bare_name(const char *asked, char ret[TEMPLATE_NAME_MAX + 1])
{
    const char *slash = strrchr(asked, '/');
    const char *name = slash ? slash + 1 : asked;
    size_t len = strcspn(name, ":");

    if (len == 0 || len > TEMPLATE_NAME_MAX)
        return false;
    (void)snprintf(ret, TEMPLATE_NAME_MAX + 1, "%.*s", (int)len, name);
    return is_name(ret);
}

/* A snapshot by its name or by that of its template: 1, 0: it is none, or ERR_NOT_FOUND: it was
 * deleted. */
static int snapshot_find(const struct e2b_request *request, const char *name,
                         struct e2b_template_ref *ret, struct err *err)
{
    const struct caller *caller = &request->exchange->caller;
    cleanup_json json_t *list = e2b_objects_list(request->e2b->objects, OBJECTS_SNAPSHOTS);
    const json_t *found = e2b_object_pick(list, caller, "name", name);
    const char *alias;

    if (!found)
        found = e2b_object_pick(list, caller, "id", name);
    if (!found)
        return 0;
    if (json_is_true(json_object_get(found, "deleted")))
        return err_set(err, ERR_NOT_FOUND, "snapshot '%s' not found", name);
    alias = json_string_value(json_object_get(found, "name"));
    (void)snprintf(ret->name, sizeof(ret->name), "%s",
                   json_string_value(json_object_get(found, "id")));
    (void)snprintf(ret->id, sizeof(ret->id), "%s", ret->name);
    (void)snprintf(ret->alias, sizeof(ret->alias), "%s", alias ? alias : "");
    return 1;
}

/* One that a client has built, by name or id, with a tag or without: 1, 0: it is none, or
 * ERR_NOT_FOUND: there is no such build of it. */
static int built_find(const struct e2b_request *request, const char *asked,
                      struct e2b_template_ref *ret, struct err *err)
{
    char name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_NAME_MAX + 1];
    cleanup_json json_t *found = NULL;
    struct err ignored;
    const char *build;

    if (e2b_tag_split(asked, name, tag, &ignored) == 0)
        found = e2b_builds_find(request->e2b->builds, &request->exchange->caller, name);
    if (!found)
        return 0;
    build = e2b_tag_build(found, tag);
    if (!build)
        return err_set(err, ERR_NOT_FOUND, "template '%.100s' has no build with that tag", asked);
    e2b_build_template(build, ret->name);
    (void)snprintf(ret->id, sizeof(ret->id), "%s", json_string_value(json_object_get(found, "id")));
    (void)snprintf(ret->alias, sizeof(ret->alias), "%s",
                   json_string_value(json_object_get(found, "name")));
    return 1;
}

/* A new user may ask for a template that must be built first. */
static int not_found(const char *asked, const char *name, struct err *err)
{
    if (strcmp(name, "base") == 0 || strcmp(name, "code-interpreter-v1") == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "template '%.100s' not found: make it with 'holt template build %s'", asked,
                       name);
    return err_set(err, ERR_NOT_FOUND,
                   "template '%.100s' not found: 'holt template ls' lists those of this host, and "
                   "Template.build makes one",
                   asked);
}

/* A name with a namespace stands for a template of that owner, else for one without it: clients
 * write a namespace of E2B's, too. */
static int local_find(const struct e2b_request *request, const char *asked, const char *name,
                      struct template_record *ret)
{
    const struct caller *caller = &request->exchange->caller;
    char word[TEMPLATE_WORD_MAX + 1];
    struct err ignored;

    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(asked, ":"), asked);
    if (strchr(word, '/') && owned_template_find(request->host, caller, word, ret, &ignored) == 0)
        return 0;
    return owned_template_find(request->host, caller, name, ret, &ignored);
}

int e2b_template_find(const struct e2b_request *request, const char *asked,
                      struct e2b_template_ref *ret, struct err *err)
{
    char name[TEMPLATE_NAME_MAX + 1];
    struct template_record found;
    int r;

    *ret = (struct e2b_template_ref){ .name = "" };
    if (!bare_name(asked, name))
        return err_set(err, ERR_NOT_FOUND, "template '%.100s' not found", asked);
    r = built_find(request, asked, ret, err);
    if (r == 0)
        r = snapshot_find(request, name, ret, err);
    if (r != 0)
        return r < 0 ? r : 0;
    if (local_find(request, asked, name, &found) < 0)
        return not_found(asked, name, err);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", found.store_name);
    (void)snprintf(ret->id, sizeof(ret->id), "%s", found.name);
    (void)snprintf(ret->alias, sizeof(ret->alias), "%s", found.name);
    return 0;
}
