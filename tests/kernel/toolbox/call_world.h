/* Helpers of the tests that call tools as clients do. */
#pragma once

#include "base/json.h"
#include "kernel/host/host_world.h"
#include "toolbox/tool.h"

#define CHECK_HAS(text, part) CHECK(strstr((text), (part)), "(got '%s')", (text))

static struct err err;

/* A call with its result; the caller ends it with done_end. */
struct done {
    struct tool_call *call;
    const struct tool_result *result;
    const char *text;
    struct buf progress;
};

static inline void done_end(struct done *done)
{
    tool_close(done->call);
    buf_done(&done->progress);
}

#define cleanup_done cleanup_with(done_end)

static inline struct tool_call *call_open(struct sandbox *sandbox, struct tool_request request,
                                          const char *params, int watch_fd)
{
    struct tool_call *call = NULL;
    cleanup_json json_t *object = NULL;
    struct err why = { 0 };

    CHECK_OK(json_parse_object(params, strlen(params), &object, &why), &why);
    request.params = object;
    CHECK_OK(tool_open(sandbox, &request, watch_fd, &call, &why), &why);
    return call;
}

/* Reads a call to its end. */
static inline struct done call_finish(struct tool_call *call)
{
    struct done done = { .call = call, .progress = BUF_INIT(64 << 20) };
    struct tool_event event = { .kind = TOOL_PROGRESS };
    struct err why = { 0 };

    while (event.kind == TOOL_PROGRESS) {
        CHECK_OK(tool_next(done.call, &event, &why), &why);
        if (event.kind == TOOL_PROGRESS)
            CHECK(buf_add(&done.progress, event.progress.text, event.progress.len) == 0);
    }
    done.result = event.result;
    CHECK(done.result->block_count > 0);
    done.text = done.result->blocks[0].text;
    return done;
}

static inline struct done call_with(struct sandbox *sandbox, struct tool_request request,
                                    const char *params)
{
    return call_finish(call_open(sandbox, request, params, -1));
}

static inline struct tool_request request_of(const char *name, const char *id)
{
    return (struct tool_request){ .name = name, .call_id = id, .snapshot = -1 };
}

static inline struct done call_tool(struct sandbox *sandbox, const char *name, const char *params)
{
    return call_with(sandbox, request_of(name, NULL), params);
}

static inline struct done call_id(struct sandbox *sandbox, const char *name, const char *id,
                                  const char *params)
{
    return call_with(sandbox, request_of(name, id), params);
}

/* Reads progress until it contains the word. */
static inline void call_await(struct tool_call *call, const char *word)
{
    cleanup_with(buf_done) struct buf heard = BUF_INIT(1 << 20);

    while (!heard.data || !strstr(heard.data, word)) {
        struct tool_event event;
        struct err why = { 0 };

        CHECK_OK(tool_next(call, &event, &why), &why);
        CHECK(event.kind == TOOL_PROGRESS);
        CHECK(buf_add(&heard, event.progress.text, event.progress.len) == 0);
    }
}

static inline struct sandbox *make_sandbox(const char *template)
{
    struct sandbox_spec spec = { .caller = &caller_root, .template = template };
    struct sandbox *sandbox = NULL;
    struct err why = { 0 };

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &why), &why);
    return sandbox;
}

/* Returns whether the path is in the list of changes. */
static inline bool has_changed(const struct tool_result *result, char kind, const char *path)
{
    for (size_t i = 0; i < result->changed_count; i++)
        if (result->changed[i].kind == kind && strcmp(result->changed[i].path, path) == 0)
            return true;
    return false;
}
