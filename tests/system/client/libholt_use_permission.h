/* The part of libholt_use.c about permissions, with its handle and its helpers. */
#pragma once

static void use_permissions(void)
{
    static const char *const rules[] = { "/src/**=write", NULL }, *const more[] = { "/x=read",
                                                                                    NULL };
    const struct holt_permission_rules given = { .preset = "agent-safe", .rules = rules };
    const struct holt_permission_operation writing = { .name = "write", .path = "a" };
    const struct holt_permission_change one = { .rules = more };
    const struct holt_permission_change all = { "agent-safe", rules, .is_revoking = true };
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_permissions *permissions;
    struct holt_permission_test *test;
    struct holt_permission_tree *tree;
    struct holt_permission_why *why;
    struct holt_sandbox *sandbox;

    CHECK(holt_volume_create(holt, "ruled", soon(), NULL, &error) == 0);
    CHECK(holt_codebase_add(holt, "ruled", "ruled", soon(), NULL, &error) == 0);
    options.codebase = "ruled";
    options.permissions = &given;
    CHECK(holt_sandbox_create(holt, &options, soon(), &sandbox, &error) == 0);
    CHECK(holt_permission_list(holt, sandbox->id, soon(), &permissions, &error) == 0);
    CHECK(permissions->is_enforced && permissions->rule_count == 10);
    IS(permissions->preset, "agent-safe");
    IS(permissions->rules[9], "/src/**=write");
    holt_free(permissions);
    CHECK(holt_permission_why(holt, sandbox->id, "a/.env", soon(), &why, &error) == 0);
    IS(why->level, "none");
    IS(why->rule, "/**/.env*=none@100");
    holt_free(why);
    CHECK(holt_permission_test(holt, sandbox->id, &writing, soon(), &test, &error) == 0);
    CHECK(!test->is_allowed);
    IS(test->error, "EACCES");
    holt_free(test);
    CHECK(holt_permission_add(holt, sandbox->id, &one, soon(), &permissions, &error) == 0);
    CHECK(permissions->generation == 2 && permissions->open_files == 0);
    holt_free(permissions);
    CHECK(holt_permission_remove(holt, sandbox->id, &one, soon(), NULL, &error) == 0);
    CHECK(holt_permission_remove(holt, sandbox->id, &one, soon(), NULL, &error) == -1);
    IS(error.code, "not_found");
    CHECK(holt_permission_set(holt, sandbox->id, &all, soon(), NULL, &error) == 0);
    CHECK(holt_permission_tree(holt, sandbox->id, NULL, soon(), &tree, &error) == 0);
    CHECK(tree->count == 0 && !tree->is_truncated);
    holt_free(tree);
    CHECK(holt_sandbox_destroy(holt, sandbox->id, soon(), &error) == 0);
    holt_free(sandbox);
    CHECK(holt_codebase_remove(holt, "ruled", soon(), &error) == 0);
    CHECK(holt_volume_remove(holt, "ruled", soon(), &error) == 0);
}
