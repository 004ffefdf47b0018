// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "store/template/template.h"
#include "store/template/usage.h"

/* Sorted by name, as template_list does: two images that share the layer a, a template that was
 * committed on the first, one of its own, and one whose base leads to itself. */
static const struct template_info infos[] = {
    { .name = "T-layer-a", .size_bytes = 100 },
    { .name = "T-layer-b", .size_bytes = 10, .base = "T-layer-a" },
    { .name = "T-layer-c", .size_bytes = 20, .base = "T-layer-a" },
    { .name = "committed", .size_bytes = 115, .base = "one" },
    { .name = "loop", .size_bytes = 7, .base = "loop" },
    { .name = "one", .size_bytes = 110, .base = "T-layer-b" },
    { .name = "own", .size_bytes = 50 },
    { .name = "two", .size_bytes = 120, .base = "T-layer-c" },
};

static struct template_usage usage;

static void bytes_of_others_are_shared(void)
{
    CHECK(template_usage_shared(&usage, "own") == 0);
    CHECK(template_usage_shared(&usage, "two") == 100);
    CHECK(template_usage_shared(&usage, "one") == 110);
    CHECK(template_usage_shared(&usage, "committed") == 110);
    CHECK(template_usage_shared(&usage, "absent") == 0);
}

static void the_last_user_frees_the_bytes(void)
{
    CHECK(template_usage_remove(&usage, "own") == 50);
    CHECK(template_usage_remove(&usage, "own") == 0);
    CHECK(template_usage_remove(&usage, "one") == 0);
    CHECK(template_usage_remove(&usage, "two") == 20);
    CHECK(template_usage_shared(&usage, "committed") == 0);
    CHECK(template_usage_remove(&usage, "committed") == 115);
}

static void templates_that_are_not_counted_share_nothing(void)
{
    static const bool is_user[ARRAY_SIZE(infos)] = { [5] = true, [6] = true };
    struct template_usage some;

    template_usage_init(&some, infos, ARRAY_SIZE(infos), is_user);
    CHECK(template_usage_shared(&some, "one") == 0);
    CHECK(template_usage_remove(&some, "one") == 110);
    template_usage_done(&some);
}

static void a_circle_ends(void)
{
    (void)template_usage_shared(&usage, "loop");
    (void)template_usage_remove(&usage, "loop");
}

int main(void)
{
    template_usage_init(&usage, infos, ARRAY_SIZE(infos), NULL);
    RUN(bytes_of_others_are_shared);
    RUN(the_last_user_frees_the_bytes);
    RUN(templates_that_are_not_counted_share_nothing);
    RUN(a_circle_ends);
    template_usage_done(&usage);
    return 0;
}
