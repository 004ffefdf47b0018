// SPDX-License-Identifier: Apache-2.0
/* The configuration that runsc gets. */
#include <jansson.h>

#include "check.h"
#include "guest/cell/bundle.c" /* NOLINT(bugprone-suspicious-include) */
#include "kernel/caps.h"

static json_t *bundle_parse(uint64_t capabilities)
{
    char text[BUNDLE_TEXT_MAX];
    json_t *value;

    CHECK(bundle_write(capabilities, text, sizeof(text)) == 0);
    value = json_loads(text, 0, NULL);
    CHECK(value, "%s", text);
    return value;
}

static void it_is_json_with_a_root_of_its_own(void)
{
    json_t *bundle = bundle_parse(caps_docker_default());
    const char *path = NULL;

    CHECK(json_unpack(bundle, "{s:{s:s}}", "root", "path", &path) == 0);
    CHECK(strcmp(path, "/root") == 0);
    json_decref(bundle);
}

static void it_has_the_capabilities_of_a_container_and_one_to_enter_its_root(void)
{
    json_t *all = bundle_parse(UINT64_MAX), *none = bundle_parse(0);
    json_t *names = NULL;

    CHECK(json_unpack(all, "{s:{s:{s:o}}}", "process", "capabilities", "bounding", &names) == 0);
    CHECK(json_array_size(names) == (size_t)__builtin_popcountll(caps_docker_default()) + 1);
    CHECK(json_unpack(none, "{s:{s:{s:o}}}", "process", "capabilities", "bounding", &names) == 0);
    CHECK(json_array_size(names) == 1);
    CHECK(strcmp(json_string_value(json_array_get(names, 0)), "CAP_SYS_ADMIN") == 0);
    json_decref(all);
    json_decref(none);
}

static void a_text_that_does_not_fit_is_an_error(void)
{
    char text[64];

    CHECK(bundle_write(0, text, sizeof(text)) == -ENOBUFS);
}

int main(void)
{
    RUN(it_is_json_with_a_root_of_its_own);
    RUN(it_has_the_capabilities_of_a_container_and_one_to_enter_its_root);
    RUN(a_text_that_does_not_fit_is_an_error);
    return 0;
}
