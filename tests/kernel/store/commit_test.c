// SPDX-License-Identifier: Apache-2.0
/* Templates made from the files of a sandbox, and templates that change below a volume. */
#include "base/io.h"
#include "kernel/store/world.h"

static struct template_info commit(struct volume *volume, const char *snapshot, const char *name)
{
    struct template_info info;
    struct err err = { 0 };

    CHECK_OK(template_commit(world.store, volume, snapshot, name, &info, &err), &err);
    CHECK_TEXT(info.name, name);
    return info;
}

static void drop_template(const char *name)
{
    struct err err = { 0 };

    CHECK_OK(template_remove(world.store, name, &err), &err);
}

/* The base minus one file and one directory, which was recreated, plus one file. */
static void change(struct volume *volume)
{
    int fd = enter(volume);

    CHECK(unlinkat(fd, "b", 0) == 0);
    CHECK(unlinkat(fd, "dir/sub/deep", 0) == 0 && unlinkat(fd, "dir/sub", AT_REMOVEDIR) == 0);
    CHECK(mkdirat(fd, "dir/sub", 0755) == 0);
    write_file(fd, "dir/sub/other", "other");
    write_file(fd, "new", "committed");
    CHECK(linkat(fd, "new", fd, "linked", 0) == 0);
    leave(fd);
}

static void check_changed(struct volume *volume)
{
    struct stat st;
    int fd = enter(volume);

    CHECK(!has(fd, "b") && !has(fd, "dir/sub/deep") && reads(fd, "dir/sub/other", "other"));
    CHECK(reads(fd, "a", "a") && reads(fd, "dir/one", "one") && reads(fd, "new", "committed"));
    CHECK(fstatat(fd, "linked", &st, 0) == 0 && st.st_nlink == 2);
    leave(fd);
}

static void a_committed_template_is_what_the_snapshot_was(void)
{
    struct volume *volume = new_volume("v"), *other;
    struct template_info info;

    change(volume);
    keep(volume, "s");
    put(volume, "new", "later");
    info = commit(volume, "s", "made");
    CHECK(info.files > 0 && info.files < 12 && info.size_bytes < 1 << 20, "(%llu files)",
          (unsigned long long)info.files);
    destroy(volume);
    other = new_volume_on("made", "other", 0);
    check_changed(other);
    put(other, "new", "changed");
    take(other, "a");
    destroy(other);
    other = new_volume_on("made", "other", 0);
    check_changed(other);
    destroy(other);
    drop_template("made");
}

static void commits_stack_and_hold_what_is_below(void)
{
    struct volume *volume = new_volume("v"), *second, *third;
    struct err err = { 0 };

    change(volume);
    keep(volume, "s");
    (void)commit(volume, "s", "first");
    destroy(volume);
    second = new_volume_on("first", "second", 0);
    put(second, "b", "back");
    take(second, "new");
    keep(second, "s");
    (void)commit(second, "s", "second");
    destroy(second);
    third = new_volume_on("second", "third", 0);
    CHECK(volume_reads(third, "b", "back") && !volume_has(third, "new"));
    CHECK(volume_reads(third, "linked", "committed") && !volume_has(third, "dir/sub/deep"));
    CHECK_KIND(template_remove(world.store, "second", &err), &err, ERR_BUSY);
    destroy(third);
    CHECK_KIND(template_remove(world.store, "first", &err), &err, ERR_BUSY);
    CHECK(strstr(err.msg, "'second'"), "(%s)", err.msg);
    CHECK_KIND(template_remove(world.store, "base", &err), &err, ERR_BUSY);
    CHECK(strstr(err.msg, "'first'"), "(%s)", err.msg);
    store_again();
    drop_template("second");
    drop_template("first");
}

static void a_view_has_every_layer(void)
{
    struct volume *volume = new_volume("v"), *other;
    struct volume_view view;
    struct err err = { 0 };

    put(volume, "new", "first");
    keep(volume, "s");
    (void)commit(volume, "s", "made");
    destroy(volume);
    other = new_volume_on("made", "other", 0);
    put(other, "new", "second");
    CHECK_OK(volume_view(other, NULL, &view, &err), &err);
    CHECK(view.tree_count == 1 && view.trees[0].count == 3);
    CHECK(reads(view.trees[0].fds[0], "new", "second"));
    CHECK(reads(view.trees[0].fds[1], "new", "first") && reads(view.trees[0].fds[2], "a", "a"));
    volume_view_done(other, &view);
    CHECK_OK(volume_view(other, "", &view, &err), &err);
    CHECK(view.trees[0].count == 2 && reads(view.trees[0].fds[0], "new", "first"));
    volume_view_done(other, &view);
    destroy(other);
    drop_template("made");
}

static void what_cannot_be_committed_leaves_nothing(void)
{
    struct volume *volume = new_volume("v");
    struct template_info info;
    struct err err = { 0 };
    char path[PATH_MAX];
    size_t before;

    (void)snprintf(path, sizeof(path), "%s/templates", world.state);
    before = count_entries(path);
    keep(volume, "s");
    CHECK_KIND(template_commit(world.store, volume, "s", "base", &info, &err), &err, ERR_EXISTS);
    CHECK_KIND(template_commit(world.store, volume, "s", "../x", &info, &err), &err, ERR_INVALID);
    CHECK_KIND(template_commit(world.store, volume, "t", "made", &info, &err), &err, ERR_NOT_FOUND);
    CHECK(count_entries(path) == before);
    destroy(volume);
}

static void layers_have_an_end(void)
{
    struct volume *volume;
    struct template_info info;
    struct err err = { 0 };
    char name[32], below[32] = "base", file[32];

    for (int i = 0; i <= TEMPLATE_LAYERS_MAX; i++) {
        volume = new_volume_on(below, "v", 0);
        (void)snprintf(file, sizeof(file), "file%d", i);
        put(volume, file, file);
        keep(volume, "s");
        (void)snprintf(name, sizeof(name), "layer%d", i);
        if (i < TEMPLATE_LAYERS_MAX) {
            (void)commit(volume, "s", name);
            (void)snprintf(below, sizeof(below), "layer%d", i);
        } else
            CHECK_KIND(template_commit(world.store, volume, "s", name, &info, &err), &err,
                       ERR_EXHAUSTED);
        for (int j = 0; j <= i; j++) {
            (void)snprintf(file, sizeof(file), "file%d", j);
            CHECK(volume_reads(volume, file, file));
        }
        destroy(volume);
    }
    for (int i = TEMPLATE_LAYERS_MAX - 1; i >= 0; i--) {
        (void)snprintf(name, sizeof(name), "layer%d", i);
        drop_template(name);
    }
}

/* --- the host's template --------------------------------------------------------------------- */

static size_t count_templates(void)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/templates", world.state);
    return count_entries(path);
}

/* Makes the store consider the host template stale at its next start. */
static void spoil_host(void)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/templates/host/meta.json", world.state);
    CHECK(file_create_at(AT_FDCWD, path, 0600, "{}") == 0);
}

static void a_mounted_volume_keeps_the_host_template_it_had(void)
{
    size_t before = count_templates();
    struct volume *volume = new_volume_on("host", "v", 0);
    int fd = enter(volume);

    write_file(fd, "etc/new", "new");
    CHECK(unlinkat(fd, "etc/hostname", 0) == 0);
    sandbox_leave();
    volume_close(volume);
    spoil_host();
    store_again();
    store_again(); /* the second start keeps it too */
    CHECK(count_templates() == before + 1);
    sandbox_enter();
    CHECK(reads(fd, "etc/hosts", "127.0.0.1 localhost holt\n::1 localhost ip6-localhost\n"));
    CHECK(reads(fd, "etc/new", "new") && !has(fd, "etc/hostname") && has(fd, "etc/passwd"));
    write_file(fd, "etc/hosts", "changed");
    leave(fd);
    /* Mounted again, on the template that replaced it. */
    {
        struct err err = { 0 };

        CHECK_OK(volume_open(world.store, "v", base_open("host"), 1, &volume, &err), &err);
    }
    CHECK(volume_reads(volume, "etc/hosts", "changed") && volume_reads(volume, "etc/new", "new"));
    CHECK(!volume_has(volume, "etc/hostname") && volume_has(volume, "etc/passwd"));
    put(volume, "etc/passwd", "changed");
    keep(volume, "s");
    (void)commit(volume, "s", "made");
    destroy(volume);
    volume = new_volume_on("made", "w", 0);
    CHECK(volume_reads(volume, "etc/passwd", "changed") && volume_has(volume, "etc/group"));
    destroy(volume);
    drop_template("made");
    store_again(); /* nothing can have it mounted now */
    CHECK(count_templates() == before);
}

static const struct claim claims[] = {
    CLAIM(a_committed_template_is_what_the_snapshot_was),
    CLAIM(commits_stack_and_hold_what_is_below),
    CLAIM(a_view_has_every_layer),
    CLAIM(what_cannot_be_committed_leaves_nothing),
    CLAIM(layers_have_an_end),
    CLAIM(a_mounted_volume_keeps_the_host_template_it_had),
};

static void all(void)
{
    world_begin();
    run_claims(claims, ARRAY_SIZE(claims));
    (void)close(world.userns_fd);
}

int main(void)
{
    RUN(all);
    return 0;
}
