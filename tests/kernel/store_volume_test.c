// SPDX-License-Identifier: Apache-2.0
/* What a volume is, whatever it is stored in. */
#include "kernel/store_world.h"

static void what_is_written_is_there_and_the_template_is_untouched(void)
{
    struct volume *volume = new_volume("v");
    struct template *template = base_open("base");

    put(volume, "new", "1");
    put(volume, "a", "changed");
    take(volume, "b");
    CHECK(volume_reads(volume, "new", "1") && volume_reads(volume, "a", "changed"));
    CHECK(!volume_has(volume, "b") && volume_reads(volume, "dir/sub/deep", "deep"));
    CHECK(reads(template->trees[0].fd, "a", "a") && has(template->trees[0].fd, "b"));
    template_close(template);
    destroy(volume);
}

static void a_rollback_brings_back_what_was(void)
{
    struct volume *volume = new_volume("v");

    put(volume, "file", "one");
    keep(volume, "s1");
    put(volume, "file", "two");
    put(volume, "later", "x");
    take(volume, "a");
    keep(volume, "s2");
    go_back(volume, "s1");
    CHECK(volume_reads(volume, "file", "one") && !volume_has(volume, "later"));
    CHECK(volume_reads(volume, "a", "a"));
    put(volume, "file", "three");
    go_back(volume, "s2");
    CHECK(volume_reads(volume, "file", "two") && volume_has(volume, "later"));
    CHECK(!volume_has(volume, "a"));
    go_back(volume, "s1");
    CHECK(volume_reads(volume, "file", "one"));
    destroy(volume);
}

static const struct claim claims[] = {
    CLAIM(what_is_written_is_there_and_the_template_is_untouched),
    CLAIM(a_rollback_brings_back_what_was),
};

int main(void)
{
    world_begin();
    run_claims(claims, ARRAY_SIZE(claims));
    (void)close(world.userns_fd);
    return 0;
}
