// SPDX-License-Identifier: Apache-2.0
/* The recorded permissions of a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "host/sandbox/info.h"
#include "host/view/permission.h"
#include "unit/host/registry_test.h"

static const char *const own[] = { "/src/**=write", "file:/src/a=read@5" };

static struct sandbox_info with_codebase(void)
{
    struct sandbox_info info = numbered(1);

    (void)snprintf(info.runtime, sizeof(info.runtime), "native");
    (void)snprintf(info.codebase, sizeof(info.codebase), "cb-1");
    (void)snprintf(info.codebase_path, sizeof(info.codebase_path), "/workspace");
    return info;
}

static void assign(struct sandbox_info *info, const char *preset, size_t count)
{
    struct permission_request request = { .preset = preset, .rules = own, .count = count };
    struct err err = { 0 };

    CHECK(permissions_assign(&request, info, &err) == 0, "(%s)", err.msg);
}

static void check_rules(const char *recorded)
{
    cleanup_with(permissions_done) struct permissions read = { .rules = NULL };
    struct err err = { 0 };

    CHECK(permissions_read(recorded, &read, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(read.preset, "agent-safe");
    CHECK(view_decide(read.rules, "/src/b").level == VIEW_WRITE);
    CHECK(view_decide(read.rules, "/src/a").level == VIEW_READ);
    CHECK(view_decide(read.rules, "/src/.env").level == VIEW_NONE);
    CHECK(view_decide(read.rules, "/README").level == VIEW_READ);
    CHECK(view_rules_generation(read.rules) == 1);
}

static void rules_stand_behind_those_of_their_preset(void)
{
    struct sandbox_info info = with_codebase();

    assign(&info, "agent-safe", ARRAY_SIZE(own));
    check_rules(info.permissions);
    sandbox_info_done(&info);
}

static void new_rules_replace_those_of_the_original(void)
{
    cleanup_with(permissions_done) struct permissions read = { .rules = NULL };
    struct sandbox_info info = with_codebase();
    struct err err = { 0 };

    assign(&info, "agent-safe", 0);
    assign(&info, "", 1);
    CHECK(permissions_read(info.permissions, &read, &err) == 0, "(%s)", err.msg);
    CHECK(view_rules_generation(read.rules) == 2 && view_rules_count(read.rules) == 1);
    CHECK_TEXT(read.preset, "");
    sandbox_info_done(&info);
}

/* Returns what permissions_assign returns, and the engine that is recorded. */
static int assign_engine(const char *preset, const char *view, char engine[PERMISSION_ENGINE_MAX])
{
    cleanup_with(permissions_done) struct permissions read = { .rules = NULL };
    const struct permission_request request = { .preset = preset, .view = view };
    struct sandbox_info info = with_codebase();
    struct err err = { 0 };
    int r = permissions_assign(&request, &info, &err);

    if (r == 0)
        CHECK(permissions_read(info.permissions, &read, &err) == 0, "(%s)", err.msg);
    CHECK((read.mask[0] != '\0') ==
          (strcmp(read.engine, "kernel") == 0 && strcmp(preset, "read-only") == 0));
    CHECK(r < 0 || read.reason[0] != '\0');
    (void)snprintf(engine, PERMISSION_ENGINE_MAX, "%s", read.engine);
    sandbox_info_done(&info);
    return r;
}

static void the_kernel_enforces_what_it_can(void)
{
    static const struct {
        const char *preset, *view, *wanted; /* NULL: refused */
    } rows[] = {
        { "read-only", NULL, "kernel" },     { "full-access", "", "kernel" },
        { "agent-safe", NULL, "fuse" },      { "view-only", NULL, "fuse" },
        { "read-only", "fuse", "fuse" },     { "full-access", "fuse", "fuse" },
        { "read-only", "kernel", "kernel" }, { "development", "kernel", NULL },
        { "view-only", "kernel", NULL },     { "", "kernel", NULL },
    };
    char engine[PERMISSION_ENGINE_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK((assign_engine(rows[i].preset, rows[i].view, engine) == 0) ==
                  (rows[i].wanted != NULL),
              "(%s)", rows[i].preset);
        CHECK_TEXT(engine, rows[i].wanted ? rows[i].wanted : "");
    }
}

static void a_request_without_rules_changes_nothing(void)
{
    struct sandbox_info info = numbered(1);

    assign(&info, "", 0);
    assign(&info, NULL, 0);
    CHECK(!info.permissions);
}

static void rules_need_a_codebase_and_a_known_preset(void)
{
    struct permission_request request = { .preset = "read-only" };
    struct sandbox_info info = numbered(1), other = with_codebase();
    struct err err = { 0 };

    CHECK(permissions_assign(&request, &info, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(strstr(err.remedy, "--codebase"), "(%s)", err.remedy);
    request.preset = "safe";
    CHECK(permissions_assign(&request, &other, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(strstr(err.remedy, "agent-safe"), "(%s)", err.remedy);
    CHECK(!info.permissions && !other.permissions);
}

static void the_registry_keeps_them(void)
{
    struct sandbox_info info = with_codebase();
    struct err err = { 0 };

    start_anew();
    assign(&info, "agent-safe", ARRAY_SIZE(own));
    info.state = SANDBOX_CREATING;
    put(&info);
    info.state = SANDBOX_ACTIVE;
    put(&info);
    stop();
    start();
    check_rules(list_one()->permissions);
    CHECK(registry_put_permissions(registry, info.id, "{\"rules\":[]}", &err) == 0);
    stop();
    start();
    CHECK_TEXT(list_one()->permissions, "{\"rules\":[]}");
    sandbox_info_done(&info);
}

static void paths_are_relative_to_the_mount_point(void)
{
    struct sandbox_info info = with_codebase();
    struct err err = { 0 };
    char inside[64];

    CHECK(permission_path(&info, "/workspace/a//b", inside, sizeof(inside), &err) == 0);
    CHECK_TEXT(inside, "/a/b");
    CHECK(permission_path(&info, "/workspace", inside, sizeof(inside), &err) == 0);
    CHECK_TEXT(inside, "/");
    CHECK(permission_path(&info, "a/b", inside, sizeof(inside), &err) == 0);
    CHECK_TEXT(inside, "/a/b");
    CHECK(permission_path(&info, "/workspaces/a", inside, sizeof(inside), &err) < 0);
    CHECK(permission_path(&info, "/etc", inside, sizeof(inside), &err) < 0);
    CHECK(permission_path(&info, "../etc", inside, sizeof(inside), &err) < 0);
}

int main(void)
{
    scratch_make();
    RUN(rules_stand_behind_those_of_their_preset);
    RUN(new_rules_replace_those_of_the_original);
    RUN(the_kernel_enforces_what_it_can);
    RUN(a_request_without_rules_changes_nothing);
    RUN(rules_need_a_codebase_and_a_known_preset);
    RUN(the_registry_keeps_them);
    RUN(paths_are_relative_to_the_mount_point);
    scratch_remove();
    return 0;
}
