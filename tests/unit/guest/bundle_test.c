// SPDX-License-Identifier: Apache-2.0
/* The configuration that runsc gets. */
#include <jansson.h>

#include "check.h"
#include "guest/cell/bundle.c" /* NOLINT(bugprone-suspicious-include) */
#include "kernel/caps.h"

static json_t *bundle_parse(uint64_t capabilities, bool has_tmp)
{
    char text[BUNDLE_TEXT_MAX];
    json_t *value;

    CHECK(bundle_write(capabilities, has_tmp, text, sizeof(text)) == 0);
    value = json_loads(text, 0, NULL);
    CHECK(value, "%s", text);
    return value;
}

static size_t mount_count(const json_t *bundle)
{
    return json_array_size(json_object_get(bundle, "mounts"));
}

static void it_is_json_with_the_tree_as_root(void)
{
    json_t *bundle = bundle_parse(caps_docker_default(), true);
    const char *path = NULL;

    CHECK(json_unpack(bundle, "{s:{s:s}}", "root", "path", &path) == 0);
    CHECK(strcmp(path, "/tree") == 0);
    json_decref(bundle);
}

static void an_absent_tmp_is_not_mounted(void)
{
    json_t *with = bundle_parse(0, true), *without = bundle_parse(0, false);

    CHECK(mount_count(with) == mount_count(without) + 1);
    json_decref(with);
    json_decref(without);
}

static void it_has_the_capabilities_of_a_container_and_no_others(void)
{
    json_t *all = bundle_parse(UINT64_MAX, true), *none = bundle_parse(0, true);
    json_t *names = NULL;

    CHECK(json_unpack(all, "{s:{s:{s:o}}}", "process", "capabilities", "bounding", &names) == 0);
    CHECK(json_array_size(names) == (size_t)__builtin_popcountll(caps_docker_default()));
    CHECK(json_unpack(none, "{s:{s:{s:o}}}", "process", "capabilities", "bounding", &names) == 0);
    CHECK(json_array_size(names) == 0);
    json_decref(all);
    json_decref(none);
}

static void a_text_that_does_not_fit_is_an_error(void)
{
    char text[64];

    CHECK(bundle_write(0, true, text, sizeof(text)) == -ENOBUFS);
}

int main(void)
{
    RUN(it_is_json_with_the_tree_as_root);
    RUN(an_absent_tmp_is_not_mounted);
    RUN(it_has_the_capabilities_of_a_container_and_no_others);
    RUN(a_text_that_does_not_fit_is_an_error);
    return 0;
}
