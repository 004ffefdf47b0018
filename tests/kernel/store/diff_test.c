// SPDX-License-Identifier: Apache-2.0
/* Diffs of states of a volume: reported paths, renames, and files that are never read. */
#include <sys/inotify.h>

#include "kernel/store/diff_world.h"

static void lower_make(void)
{
    make_dir("lower");
    put_file("lower/kept", "kept\n");
    put_file("lower/changed", "one\ntwo\nthree\n");
    put_file("lower/gone", "gone\n");
    make_dir("lower/dir");
    put_file("lower/dir/inner", "inner\n");
    put_file("lower/dir/other", "other\n");
    make_dir("lower/empty");
    CHECK(symlink("kept", "lower/link") == 0);
}

static void nothing_differs_from_itself(void)
{
    lower_make();
    overlay_mount("upper", "lower");
    overlay_umount();
    CHECK_TEXT(diff_names("lower", "lower"), "");
    CHECK_TEXT(diff_names("lower", "upper:lower"), "");
    CHECK_TEXT(diff_names("upper:lower", "lower"), "");
}

static void whiteouts_are_deletions(void)
{
    lower_make();
    overlay_mount("upper", "lower");
    CHECK(unlink("merged/gone") == 0 && unlink("merged/link") == 0 && rmdir("merged/empty") == 0);
    CHECK(tree_remove_at(AT_FDCWD, "merged/dir") == 0);
    overlay_umount();
    CHECK_TEXT(diff_names("lower", "upper:lower"),
               "D /dir/inner\nD /dir/other\nD /empty\nD /gone\nD /link\n");
    CHECK_TEXT(diff_names("upper:lower", "lower"),
               "A /dir/inner\nA /dir/other\nA /empty\nA /gone\nA /link\n");
}

static void an_opaque_directory_hides_what_is_below(void)
{
    char letter = 0;

    lower_make();
    overlay_mount("upper", "lower");
    CHECK(tree_remove_at(AT_FDCWD, "merged/dir") == 0 && mkdir("merged/dir", 0755) == 0);
    put_file("merged/dir/inner", "inner\n"); /* unchanged */
    put_file("merged/dir/new", "new\n");
    overlay_umount();
    CHECK(getxattr("upper/dir", "trusted.overlay.opaque", &letter, 1) == 1 && letter == 'y');
    CHECK_TEXT(diff_names("lower", "upper:lower"), "A /dir/new\nD /dir/other\n");
}

static void a_file_between_ends_the_merge_of_directories(void)
{
    lower_make();
    make_dir("middle");
    put_file("middle/dir", "a file\n");
    make_dir("upper");
    make_dir("upper/dir");
    put_file("upper/dir/new", "new\n");
    CHECK_TEXT(diff_names("lower", "upper:middle:lower"),
               "D /dir/inner\nA /dir/new\nD /dir/other\n");
}

static void whiteouts_may_be_files_in_a_marked_directory(void)
{
    lower_make();
    make_dir("upper");
    make_dir("upper/dir");
    put_file("upper/dir/inner", "");
    put_file("upper/dir/other", "");
    CHECK(setxattr("upper/dir/inner", "trusted.overlay.whiteout", "y", 1, 0) == 0);
    CHECK_TEXT(diff_names("lower", "upper:lower"), "M /dir/inner\nM /dir/other\n");
    CHECK(setxattr("upper/dir", "trusted.overlay.opaque", "x", 1, 0) == 0);
    CHECK_TEXT(diff_names("lower", "upper:lower"), "D /dir/inner\nM /dir/other\n");
}

static void modes_owners_and_targets_count_but_times_do_not(void)
{
    lower_make();
    overlay_mount("upper", "lower");
    CHECK(chmod("merged/gone", 0600) == 0 && chown("merged/changed", 5, 6) == 0);
    CHECK(chmod("merged/dir", 0700) == 0 && chmod("merged/empty", 0700) == 0);
    CHECK(unlink("merged/link") == 0 && symlink("gone", "merged/link") == 0);
    CHECK(utimensat(AT_FDCWD, "merged/kept", NULL, 0) == 0);
    CHECK(utimensat(AT_FDCWD, "merged/dir/inner", NULL, 0) == 0);
    overlay_umount();
    CHECK_TEXT(diff_names("lower", "upper:lower"),
               "M /changed\nM /dir\nM /empty\nM /gone\nM /link\n");
}

static void one_thing_may_become_another(void)
{
    lower_make();
    overlay_mount("upper", "lower");
    CHECK(tree_remove_at(AT_FDCWD, "merged/dir") == 0);
    put_file("merged/dir", "a file now\n");
    CHECK(unlink("merged/gone") == 0 && mkdir("merged/gone", 0755) == 0);
    put_file("merged/gone/new", "new\n");
    CHECK(unlink("merged/kept") == 0 && mkdir("merged/kept", 0755) == 0);
    CHECK(unlink("merged/link") == 0 && mkfifo("merged/link", 0644) == 0);
    overlay_umount();
    CHECK_TEXT(diff_names("lower", "upper:lower"),
               "A /dir\nD /dir/inner\nD /dir/other\nD /gone\nA /gone/new\nM /kept\nM /link\n");
}

static void paths_come_in_order_of_their_bytes(void)
{
    make_dir("old");
    make_dir("new");
    make_dir("new/a");
    put_file("new/a/x", "1");
    put_file("new/a-", "2");
    put_file("new/a.c", "3");
    put_file("new/a0", "4");
    make_dir("new/a.d");
    put_file("new/a.d/y", "5");
    make_dir("new/a/b");
    put_file("new/a/b/z", "6");
    put_file("new/a/b.c", "7");
    put_file("new/\xc3\xa4", "8");
    CHECK_TEXT(diff_names("old", "new"), "A /a-\nA /a.c\nA /a.d/y\nA /a/b.c\nA /a/b/z\nA /a/x\n"
                                         "A /a0\nA /\xc3\xa4\n");
}

static void a_moved_file_is_a_rename(void)
{
    lower_make();
    overlay_mount("upper", "lower");
    CHECK(rename("merged/gone", "merged/here") == 0 && rename("merged/link", "merged/a") == 0);
    make_dir("merged/moved");
    CHECK(rename("merged/dir/inner", "merged/moved/inner") == 0);
    CHECK(rename("merged/dir/other", "merged/moved/other") == 0);
    CHECK(rename("merged/changed", "merged/x") == 0);
    put_file("merged/x", "no longer the same\n");
    overlay_umount();
    CHECK_TEXT(diff_names("lower", "upper:lower"),
               "R /a < /link\nD /changed\nR /here < /gone\nR /moved/inner < /dir/inner\n"
               "R /moved/other < /dir/other\nA /x\n");
}

static void each_path_is_in_one_rename_at_most(void)
{
    make_dir("old");
    make_dir("new");
    put_file("old/1", "same");
    put_file("old/2", "same");
    put_file("old/empty", "");
    put_file("old/mode", "other");
    put_file("new/3", "same");
    put_file("new/4", "same");
    put_file("new/5", "same");
    put_file("new/nothing", "");
    put_file("new/mode2", "other");
    CHECK(chmod("new/mode2", 0755) == 0);
    CHECK_TEXT(diff_names("old", "new"),
               "R /3 < /1\nR /4 < /2\nA /5\nD /empty\nD /mode\nA /mode2\nA /nothing\n");
}

static void the_same_inode_is_preferred_in_a_rename(void)
{
    make_dir("old");
    make_dir("new");
    put_file("old/1", "same");
    put_file("old/2", "same");
    CHECK(link("old/2", "new/3") == 0);
    put_file("new/4", "same");
    CHECK_TEXT(diff_names("old", "new"), "R /3 < /2\nR /4 < /1\n");
}

static void holes_are_zeros(void)
{
    static char zeros[300000];

    make_dir("old");
    make_dir("new");
    put_bytes("old/a", zeros, sizeof(zeros));
    put_file("new/a", "");
    CHECK(truncate("new/a", sizeof(zeros)) == 0);
    put_bytes("old/b", zeros, sizeof(zeros));
    CHECK(rename("old/b", "old/x") == 0);
    put_file("new/b", "");
    CHECK(truncate("new/b", sizeof(zeros)) == 0);
    CHECK_TEXT(diff_names("old", "new"), "R /b < /x\n");
    put_file("old/c", "");
    CHECK(truncate("old/c", sizeof(zeros)) == 0);
    zeros[sizeof(zeros) / 2] = 1;
    put_bytes("new/c", zeros, sizeof(zeros));
    CHECK_TEXT(diff_names("old", "new"), "R /b < /x\nM /c\n");
    CHECK_TEXT(diff_names("new", "old"), "M /c\nR /x < /b\n");
    CHECK(truncate("new/a", sizeof(zeros) - 1) == 0);
    CHECK_TEXT(diff_names("old", "new"), "M /a\nR /b < /x\nM /c\n");
}

static void trees_cover_what_is_at_their_target(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    cleanup_with(buf_done) struct buf report = BUF_INIT(REPORT_MAX);
    struct diff_options options = { 0 };
    struct err err = { 0 };

    make_dir("root");
    make_dir("root/usr");
    put_file("root/usr/covered", "old");
    make_dir("root/var");
    make_dir("root/var/lib");
    make_dir("usr");
    make_dir("usr/bin");
    put_file("usr/bin/tool", "tool");
    make_dir("lib");
    put_file("lib/data", "data");
    make_dir("root-upper");
    put_file("root-upper/a", "a");
    make_dir("root-upper/usr");
    put_file("root-upper/usr/covered", "new");
    put_file("root-upper/z", "z");
    make_dir("usr-upper");
    make_dir("usr-upper/bin");
    put_file("usr-upper/bin/tool", "toot");
    make_dir("lib-upper");
    put_file("lib-upper/more", "more");
    old = view_open("/", "root", "/usr", "usr", "/var/lib", "lib", NULL);
    new = view_open("/", "root-upper:root", "/usr", "usr-upper:usr", "/var/lib", "lib-upper:lib",
                    NULL);
    CHECK(diff_run(&old, &new, &options, entry_print, &report, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(report.data, "A /a\nM /usr/bin/tool\nA /var/lib/more\nA /z\n");
}

static void other_trees_are_refused(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    struct diff_options options = { 0 };
    struct err err = { 0 };

    make_dir("root");
    old = view_open("/", "root", NULL);
    new = view_open("/", "root", "/usr", "root", NULL);
    CHECK(diff_run(&old, &new, &options, entry_print, NULL, &err) < 0 && err.kind == ERR_INVALID);
}

static void owners_are_those_in_the_sandbox(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    cleanup_with(buf_done) struct buf report = BUF_INIT(REPORT_MAX);
    struct diff_options options = { 0 };
    struct err err = { 0 };

    make_dir("old");
    put_file("old/a", "a");
    put_file("old/b", "b");
    CHECK(run_in(".", "cp", "-a", "old", "new", NULL) == 0);
    CHECK(chown("new", 1000, 1000) == 0 && chown("new/a", 1000, 1000) == 0);
    CHECK(chown("new/b", 1001, 1000) == 0);
    old = view_open("/", "old", NULL);
    new = view_open("/", "new", NULL);
    new.owner_shift = 1000;
    CHECK(diff_run(&old, &new, &options, entry_print, &report, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(report.data, "M /b\n");
}

static int stop_at_second(const struct diff_entry *entry, void *context)
{
    (void)entry;
    return ++*(int *)context == 2 ? 77 : 0;
}

static void the_receiver_can_stop(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    struct diff_options options = { 0 };
    struct err err = { 0 };
    int count = 0;

    make_dir("old");
    make_dir("new");
    put_file("new/1", "");
    put_file("new/2", "");
    put_file("new/3", "");
    old = view_open("/", "old", NULL);
    new = view_open("/", "new", NULL);
    CHECK(diff_run(&old, &new, &options, stop_at_second, &count, &err) == 77 && count == 2);
}

static void sizes_and_types_make(void)
{
    make_dir("old");
    make_dir("new");
    put_file("old/f", "123");
    put_file("new/f", "12345");
    CHECK(mkfifo("old/p", 0644) == 0 && symlink("abc", "new/l") == 0);
    make_dir("new/d");
    CHECK(mknod("new/c", S_IFCHR | 0644, 0) == 0); /* not a whiteout: this tree is no overlay */
}

static int check_types(const struct diff_entry *entry, void *context)
{
    static const struct diff_entry wanted[] = {
        { .path = "/c", .type = 'c' },
        { .path = "/d", .type = 'd' },
        { .path = "/f", .type = 'f', .size = 5, .old_size = 3 },
        { .path = "/l", .type = 'l', .size = 3 },
        { .path = "/p", .type = 'p' },
    };
    const struct diff_entry *want = &wanted[(*(size_t *)context)++];

    CHECK_TEXT(entry->path, want->path);
    CHECK(entry->type == want->type && entry->size == want->size &&
          entry->old_size == want->old_size && !entry->patch);
    return 0;
}

static void sizes_and_types_are_told(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    struct diff_options options = { 0 };
    struct err err = { 0 };
    size_t count = 0;

    sizes_and_types_make();
    old = view_open("/", "old", NULL);
    new = view_open("/", "new", NULL);
    CHECK(diff_run(&old, &new, &options, check_types, &count, &err) == 0 && count == 5);
}

static void the_template_is_not_entered(void)
{
    cleanup_close int watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    int changed;
    ssize_t len;

    lower_make();
    make_dir("lower/untouched");
    put_file("lower/untouched/file", "text\n");
    overlay_mount("upper", "lower");
    put_file("merged/dir/new", "new\n");
    overlay_umount();
    CHECK(watch_fd >= 0 && inotify_add_watch(watch_fd, "lower/untouched", IN_OPEN) >= 0);
    changed = inotify_add_watch(watch_fd, "lower/dir", IN_OPEN | IN_ACCESS);
    CHECK(changed >= 0);
    CHECK_TEXT(diff_names("lower", "upper:lower"), "A /dir/new\n");
    len = read(watch_fd, events, sizeof(events));
    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *seen = (const void *)(events + at);

        /* The changed directory is opened to look up names, but it is not listed and its files are
         * not read. */
        CHECK(seen->mask == (IN_OPEN | IN_ISDIR) && seen->wd == changed && seen->len == 0,
              "(%x in %d: %s)", seen->mask, seen->wd, seen->len ? seen->name : "");
        at += (ssize_t)(sizeof(*seen) + seen->len);
    }
}

static void what_overlay_does_by_option_is_refused(void)
{
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    struct diff_options options = { 0 };
    struct err err = { 0 };

    lower_make();
    make_dir("upper");
    make_dir("upper/new");
    CHECK(setxattr("upper/new", "trusted.overlay.redirect", "dir", 3, 0) == 0);
    old = view_open("/", "lower", NULL);
    new = view_open("/", "upper:lower", NULL);
    CHECK(diff_run(&old, &new, &options, entry_print, NULL, &err) < 0);
    CHECK(err.kind == ERR_UNSUPPORTED && strstr(err.msg, "'/new'"), "(%s)", err.msg);
    CHECK(rmdir("upper/new") == 0);
    put_file("upper/kept", "12345");
    CHECK(setxattr("upper/kept", "trusted.overlay.metacopy", "", 0, 0) == 0);
    CHECK(diff_run(&old, &new, &options, entry_print, NULL, &err) < 0);
    CHECK(err.kind == ERR_UNSUPPORTED && strstr(err.msg, "'/kept'"), "(%s)", err.msg);
}

static void all(void)
{
    world_begin();
    RUN_STAGED(nothing_differs_from_itself);
    RUN_STAGED(whiteouts_are_deletions);
    RUN_STAGED(an_opaque_directory_hides_what_is_below);
    RUN_STAGED(a_file_between_ends_the_merge_of_directories);
    RUN_STAGED(whiteouts_may_be_files_in_a_marked_directory);
    RUN_STAGED(modes_owners_and_targets_count_but_times_do_not);
    RUN_STAGED(one_thing_may_become_another);
    RUN_STAGED(paths_come_in_order_of_their_bytes);
    RUN_STAGED(a_moved_file_is_a_rename);
    RUN_STAGED(each_path_is_in_one_rename_at_most);
    RUN_STAGED(the_same_inode_is_preferred_in_a_rename);
    RUN_STAGED(holes_are_zeros);
    RUN_STAGED(trees_cover_what_is_at_their_target);
    RUN_STAGED(other_trees_are_refused);
    RUN_STAGED(owners_are_those_in_the_sandbox);
    RUN_STAGED(the_receiver_can_stop);
    RUN_STAGED(sizes_and_types_are_told);
    RUN_STAGED(the_template_is_not_entered);
    RUN_STAGED(what_overlay_does_by_option_is_refused);
}

int main(void)
{
    RUN(all);
    return 0;
}
