// SPDX-License-Identifier: Apache-2.0
/* Tool workers in real sandboxes. */
#include <pthread.h>

#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/toolbox/world.h"

static struct sandbox *box;

static void a_worker_writes_reads_and_edits(void)
{
    CHECK_SAYS(tool_write(box, "d/a.txt", "one\ntwo\n", true), false,
               "Created 'd/a.txt' (8 bytes).");
    CHECK_SAYS(tool_read(box, "/workspace/d/a.txt"), false, "     1\tone\n     2\ttwo\n");
    CHECK_SAYS(tool_edit(box, "d/a.txt", "two", "three"), false, "Replaced 1 occurrence");
    CHECK_TEXT(world_cat(box, "/workspace/d/a.txt"), "one\nthree");
    CHECK_SAYS(tool_read(box, "nothing"), true, "'nothing' does not exist.");
    CHECK_SAYS(tool_read(box, "/etc/../etc//origin"), false, "     1\ttemplate\n");
}

static void changes_are_reported(void)
{
    struct outcome_of_tool made = tool_write(box, "new/f", "x", true);
    struct outcome_of_tool written = tool_write(box, "/workspace/new/../new/f", "y", false);

    CHECK(made.r == 0 && made.reply.change_count == 2);
    CHECK(made.reply.changes[0].kind == 'A' && made.reply.changes[1].kind == 'A');
    CHECK_TEXT(made.reply.changes[0].path, "/workspace/new");
    CHECK_TEXT(made.reply.changes[1].path, "/workspace/new/f");
    CHECK(written.r == 0 && written.reply.change_count == 1);
    CHECK(written.reply.changes[0].kind == 'M');
    CHECK_TEXT(written.reply.changes[0].path, "/workspace/new/f");
    outcome_done(&made);
    outcome_done(&written);
}

static void modes_and_owners_are_kept(void)
{
    CHECK(world_sh(box, "cd /workspace; echo old > m; busybox chown 12:34 m; busybox chmod 4750 m",
                   NULL) == 0);
    CHECK_SAYS(tool_edit(box, "m", "old", "new"), false, "Replaced 1");
    CHECK_SAYS(tool_write(box, "fresh", "x", false), false, "Created");
    CHECK(world_sh(box, "test \"$(busybox stat -c %a,%u,%g /workspace/m)\" = 4750,12,34", NULL) ==
          0);
    CHECK(world_sh(box, "test \"$(busybox stat -c %a,%u,%g /workspace/fresh)\" = 644,0,0", NULL) ==
          0);
}

static void large_parameters_and_replies_work(void)
{
    const size_t len = 12 * 1024 * 1024;
    cleanup_free char *text = calloc(1, len + 1);
    struct outcome_of_tool got;
    struct tool_value values[3];

    CHECK(text);
    for (size_t i = 0; i < len; i++)
        text[i] = i % 1000 == 999 ? '\n' : (char)('a' + i % 26);
    CHECK_SAYS(tool_write(box, "much", text, false), false, "Created 'much' (12582912 bytes).");
    values[0] = TEXT_VALUE("much");
    values[1] = NUMBER_VALUE(0);
    values[2] = NUMBER_VALUE(9000);
    got = tool_run(box, WORKER_READ_FILE, values, 3);
    CHECK(got.r == 0 && got.reply.outcome.flags == TOOL_IS_CUT);
    CHECK(got.reply.content.len > 9000 * 1000);
    CHECK(strstr(got.reply.content.data, "(lines 1-9000 of 12583; continue with offset 9000)\n"));
    outcome_done(&got);
    memcpy(text, "\x89PNG\r\n\x1a\n", 8);
    text[5 * 1024 * 1024] = '\0';
    CHECK_SAYS(tool_write(box, "image.png", text, false), false, "Created");
    got = tool_read(box, "image.png");
    CHECK(got.r == 0 && got.reply.outcome.flags == TOOL_IS_IMAGE);
    CHECK(got.reply.content.len == 5 * 1024 * 1024 &&
          memcmp(got.reply.content.data, text, got.reply.content.len) == 0);
    outcome_done(&got);
}

static void parameters_that_are_too_large_are_refused(void)
{
    cleanup_free char *text = calloc(1, TOOL_PARAMS_MAX + 1);

    CHECK(text);
    memset(text, 'x', TOOL_PARAMS_MAX);
    CHECK_TOOL_REFUSED(tool_write(box, "f", text, false), ERR_INVALID);
}

static void workers_are_reused_and_end_when_idle(void)
{
    file_pool_prune(&box->machine->tools, UINT64_MAX);
    CHECK(tool_idle_workers(box) == 0);
    for (int i = 0; i < 20; i++)
        CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
    CHECK(tool_idle_workers(box) == 1);
    file_pool_prune(&box->machine->tools, clock_ms());
    CHECK(tool_idle_workers(box) == 1);
    file_pool_prune(&box->machine->tools, clock_ms() + 2 * FILE_IDLE_MS);
    CHECK(tool_idle_workers(box) == 0);
}

enum { CALLERS = 24, CALLS_EACH = 20 }; /* more callers than workers */

static void *make_calls(void *number)
{
    char path[32], content[32], line[64];

    for (int i = 0; i < CALLS_EACH; i++) {
        (void)snprintf(path, sizeof(path), "caller-%d", *(int *)number);
        (void)snprintf(content, sizeof(content), "%d of %d", i, *(int *)number);
        (void)snprintf(line, sizeof(line), "     1\t%s\n", content);
        CHECK_SAYS(tool_write(box, path, content, false), false, path);
        CHECK_SAYS(tool_read(box, path), false, line);
    }
    return NULL;
}

static void many_callers_get_their_own_replies(void)
{
    pthread_t threads[CALLERS];
    int numbers[CALLERS];

    for (int i = 0; i < CALLERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, make_calls, &numbers[i]) == 0);
    }
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(tool_idle_workers(box) <= FILE_WORKERS_MAX);
}

static void a_sandbox_that_is_not_active_refuses_tools(void)
{
    struct err err = { 0 };

    CHECK_OK(sandbox_pause(box, &err), &err);
    CHECK_TOOL_REFUSED(tool_read(box, "/etc/origin"), ERR_BUSY);
    CHECK_OK(sandbox_resume(box, &err), &err);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

static void a_worker_sees_the_files_of_a_rollback(void)
{
    struct err err = { 0 };
    struct snapshot_info info;

    CHECK_SAYS(tool_write(box, "turn", "before", false), false, "Created");
    CHECK_OK(sandbox_snapshot(box, "before", SNAPSHOT_NAMED, &info, &err), &err);
    CHECK_SAYS(tool_write(box, "turn", "after", false), false, "Wrote");
    CHECK_OK(sandbox_rollback(box, "before", false, &err), &err);
    CHECK_SAYS(tool_read(box, "turn"), false, "     1\tbefore\n");
}

/* The workers of the earlier daemon process have ended; the next one starts new ones. */
static void an_adopted_sandbox_has_workers(void)
{
    struct err err = { 0 };

    CHECK_SAYS(tool_write(box, "adopted", "before", false), false, "Created");
    sandbox_unref(box);
    host_close(TAKE_PTR(world.host));
    world_start();
    CHECK_OK(sandbox_find(world.host, &caller_root, "tools", &box, &err), &err);
    CHECK_SAYS(tool_read(box, "adopted"), false, "     1\tbefore\n");
}

static void the_bwrap_runtime_has_workers_too(void)
{
    struct sandbox_spec spec = {
        .caller = &caller_root, .name = "bwrap", .template = "small", .runtime = "bwrap"
    };
    struct sandbox *other = NULL;
    struct err err = { 0 };

    CHECK_OK(sandbox_create(world.host, &spec, &other, &err), &err);
    CHECK_SAYS(tool_write(other, "f", "x", true), false, "Created 'f'");
    CHECK_SAYS(tool_read(other, "/workspace/f"), false, "     1\tx\n");
    world_destroy(other);
}

static void all(void)
{
    world_open("dir");
    world_import("small");
    box = world_create("tools");
    RUN(a_worker_writes_reads_and_edits);
    RUN(changes_are_reported);
    RUN(modes_and_owners_are_kept);
    RUN(large_parameters_and_replies_work);
    RUN(parameters_that_are_too_large_are_refused);
    RUN(workers_are_reused_and_end_when_idle);
    RUN(many_callers_get_their_own_replies);
    RUN(a_sandbox_that_is_not_active_refuses_tools);
    RUN(a_worker_sees_the_files_of_a_rollback);
    RUN(an_adopted_sandbox_has_workers);
    RUN(the_bwrap_runtime_has_workers_too);
    world_destroy(box);
    world_close();
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(all);
    return 0;
}
