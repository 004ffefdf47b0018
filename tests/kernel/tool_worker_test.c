// SPDX-License-Identifier: Apache-2.0
/* Tools done by a true worker inside a true sandbox. */
#include "kernel/tool_world.h"

static struct sandbox *box;

static void a_worker_does_what_it_is_asked(void)
{
    CHECK(world_sh(box, "mkdir -p /workspace", NULL) == 0);
    CHECK_SAYS(tool_write(box, "d/a.txt", "one\ntwo\n", true), false,
               "Created 'd/a.txt' (8 bytes).");
    CHECK_SAYS(tool_read(box, "/workspace/d/a.txt"), false, "     1\tone\n     2\ttwo\n");
    CHECK_SAYS(tool_edit(box, "d/a.txt", "two", "three"), false, "Replaced 1 occurrence");
    CHECK_TEXT(world_cat(box, "/workspace/d/a.txt"), "one\nthree");
}

static void all(void)
{
    world_open("dir");
    world_import("small");
    box = world_create("tools");
    RUN(a_worker_does_what_it_is_asked);
    world_destroy(box);
    world_close();
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(all);
    return 0;
}
