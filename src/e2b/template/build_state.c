// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/build_state.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "builder/build.h"
#include "e2b/core/object_store.h"
#include "e2b/template/build.h"
#include "host/core/reactor.h"

static void tags_move(json_t *template, const json_t *build, const char *id)
{
    const json_t *tag;
    size_t i;

    json_array_foreach(json_object_get(build, "tags"), i, tag)
        (void)json_object_set_new(
            json_object_get(template, "tags"), json_string_value(tag),
            json_pack("{s:s, s:o}", "build", id, "createdAt", json_time(clock_wall_ms())));
}

void e2b_build_settle(json_t *template, const char *id, const struct build_state *state)
{
    json_t *build = json_object_get(json_object_get(template, "builds"), id);

    if (!build)
        return;
    (void)json_object_set_new(build, "status",
                              json_string(state->status == BUILD_IS_READY ? "ready" : "error"));
    if (state->status == BUILD_IS_READY) {
        tags_move(template, build, id);
    } else {
        (void)json_object_set_new(build, "message", json_text(state->err.msg));
        (void)json_object_set_new(build, "step", json_string(state->step));
    }
    (void)json_object_set_new(template, "updatedAt", json_time(clock_wall_ms()));
}

static bool has_tag(const json_t *template, const char *id)
{
    const char *tag;
    json_t *each;

    json_object_foreach(json_object_get(template, "tags"), tag, each) {
        const char *build = json_string_value(json_object_get(each, "build"));

        if (build && strcmp(build, id) == 0)
            return true;
    }
    return false;
}

static bool is_going_on(const json_t *build)
{
    const char *status = json_string_value(json_object_get(build, "status"));

    return status && strcmp(status, "building") == 0;
}

void e2b_builds_trim(json_t *template)
{
    json_t *all = json_object_get(template, "builds"), *build;
    size_t surplus = json_object_size(all);
    const char *id;
    void *next;

    surplus = surplus > E2B_BUILDS_KEPT ? surplus - E2B_BUILDS_KEPT : 0;
    json_object_foreach_safe(all, next, id, build)
    {
        if (surplus == 0)
            return;
        if (has_tag(template, id) || is_going_on(build))
            continue;
        (void)json_object_del(all, id);
        surplus--;
    }
}

bool e2b_build_is_known(const json_t *templates, const char *id)
{
    const json_t *template;
    size_t i;

    json_array_foreach(templates, i, template) {
        const json_t *build = json_object_get(json_object_get(template, "builds"), id);
        const char *status = json_string_value(json_object_get(build, "status"));

        if (status && strcmp(status, "error") != 0)
            return true;
    }
    return false;
}

int e2b_builds_mark_lost(struct e2b_objects *objects, struct err *err)
{
    cleanup_json json_t *list = e2b_objects_list(objects, OBJECTS_TEMPLATES);
    json_t *template, *build;
    const char *id;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, template) {
        bool is_changed = false;

        json_object_foreach(json_object_get(template, "builds"), id, build) {
            if (!is_going_on(build))
                continue;
            (void)json_object_set_new(build, "status", json_string("error"));
            (void)json_object_set_new(build, "message",
                                      json_string("the daemon ended during the build"));
            is_changed = true;
        }
        if (is_changed && r == 0)
            r = e2b_objects_put(objects, OBJECTS_TEMPLATES, template, NULL, err);
    }
    return r;
}
