// SPDX-License-Identifier: Apache-2.0
/* Tools for agents, on real sandboxes: what they answer, what is kept of that, and what becomes of
 * a call when its client or the daemon goes away. */
#include "base/json.h"
#include "host/tool.h"
#include "kernel/host_world.h"

static struct err err;

/* --- helpers --------------------------------------------------------------------------------- */

/* The result of a call, which is the caller's to close. */
struct done {
    struct tool_call *call;
    const struct tool_result *result;
    const char *text;
    struct buf progress;
};

static void done_end(struct done *done)
{
    tool_close(done->call);
    buf_done(&done->progress);
}

static struct done run(struct sandbox *sandbox, struct tool_request request, const char *params)
{
    struct done done = { .progress = BUF_INIT(64 << 20) };
    struct tool_event event = { .kind = TOOL_PROGRESS };
    cleanup_json json_t *object = NULL;

    CHECK_OK(json_parse_object(params, strlen(params), &object, &err), &err);
    request.params = object;
    CHECK_OK(tool_open(sandbox, &request, -1, &done.call, &err), &err);
    while (event.kind == TOOL_PROGRESS) {
        CHECK_OK(tool_next(done.call, &event, &err), &err);
        if (event.kind == TOOL_PROGRESS)
            CHECK(buf_add(&done.progress, event.progress.text, event.progress.len) == 0);
    }
    done.result = event.result;
    CHECK(done.result->block_count > 0);
    done.text = done.result->blocks[0].text;
    return done;
}

static struct done call(struct sandbox *sandbox, const char *name, const char *params)
{
    return run(sandbox, (struct tool_request){ .name = name, .snapshot = -1 }, params);
}

#define CHECK_HAS(text, part) CHECK(strstr((text), (part)), "(got '%s')", (text))

/* --- bash ------------------------------------------------------------------------------------ */

static void bash_says_what_was_written_and_how_it_ended(void)
{
    struct sandbox *sandbox = world_create("bash");
    cleanup_with(done_end) struct done done =
        call(sandbox, "bash", "{\"command\": \"echo out; echo err >&2; exit 3\"}");

    CHECK_HAS(done.text, "out\n[stderr]\nerr\n[exit code 3, ");
    CHECK(!done.result->is_error && done.result->has_exit_code && done.result->exit_code == 3);
    CHECK(done.result->tier == 2 && !done.result->is_truncated && !done.result->is_repeated);
    CHECK(strstr(done.progress.data, "out\n") && strstr(done.progress.data, "err\n"));
    world_destroy(sandbox);
}

int main(void)
{
    must_be_root();
    world_open("dir");
    world_import("small");
    RUN(bash_says_what_was_written_and_how_it_ended);
    world_close();
    return 0;
}
