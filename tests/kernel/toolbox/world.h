/* Helpers of the tests that run tools in tool workers directly. */
#pragma once

#include "host/core/reactor.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/host/host_world.h"
#include "toolbox/worker.h"

/* Values in the order of the tool's parameters. */
#define TEXT_VALUE(given)                                                                          \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_TEXT, .text = {(given), strlen(given) }                                       \
    }
#define NUMBER_VALUE(given)                                                                        \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_NUMBER, .number = (given)                                                     \
    }
#define FLAG_VALUE(given)                                                                          \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_FLAG, .number = (given)                                                       \
    }

static inline unsigned tool_idle_workers(struct sandbox *sandbox)
{
    struct file_pool *pool = &sandbox->machine->tools;
    unsigned count;

    lock_take(&pool->lock);
    count = pool->idle_count;
    lock_release(&pool->lock);
    return count;
}

/* The outcome of a call; the caller frees it with outcome_done. */
struct outcome_of_tool {
    int r;
    struct err err;
    struct tool_worker_reply reply;
};

static inline void outcome_done(struct outcome_of_tool *outcome)
{
    tool_worker_reply_done(&outcome->reply);
}

static inline struct outcome_of_tool tool_run(struct sandbox *sandbox, enum worker_tool tool,
                                              const struct tool_value *values, size_t count)
{
    const struct tool_worker_job job = {
        .tool = tool, .values = values, .count = count, .watch_fd = -1
    };
    struct outcome_of_tool outcome = { .r = 0 };

    outcome.r = tool_worker_run(sandbox, &job, &outcome.reply, &outcome.err);
    return outcome;
}

static inline struct outcome_of_tool tool_read(struct sandbox *sandbox, const char *path)
{
    const struct tool_value values[] = { TEXT_VALUE(path), NUMBER_VALUE(0), NUMBER_VALUE(0) };

    return tool_run(sandbox, WORKER_READ_FILE, values, ARRAY_SIZE(values));
}

static inline struct outcome_of_tool tool_write(struct sandbox *sandbox, const char *path,
                                                const char *content, bool creates_dirs)
{
    const struct tool_value values[] = { TEXT_VALUE(path), TEXT_VALUE(content),
                                         FLAG_VALUE(creates_dirs) };

    return tool_run(sandbox, WORKER_WRITE_FILE, values, ARRAY_SIZE(values));
}

static inline struct outcome_of_tool tool_edit(struct sandbox *sandbox, const char *path,
                                               const char *old_text, const char *new_text)
{
    const struct tool_value values[] = { TEXT_VALUE(path), TEXT_VALUE(old_text),
                                         TEXT_VALUE(new_text), FLAG_VALUE(false) };

    return tool_run(sandbox, WORKER_EDIT_FILE, values, ARRAY_SIZE(values));
}

/* Checks whether the tool succeeded, and that its text contains `wanted`. */
#define CHECK_SAYS(call, is_error, wanted)                                                         \
    do {                                                                                           \
        cleanup_with(outcome_done) struct outcome_of_tool done_ = (call);                          \
        CHECK(done_.r == 0, "(%s)", done_.err.msg);                                                \
        CHECK(!(done_.reply.outcome.flags & TOOL_IS_ERROR) == !(is_error), "(%s)",                 \
              done_.reply.content.data);                                                           \
        CHECK(strstr(done_.reply.content.data, (wanted)), "(says '%s')",                           \
              done_.reply.content.data);                                                           \
    } while (0)

#define CHECK_TOOL_REFUSED(call, wanted)                                                           \
    do {                                                                                           \
        struct outcome_of_tool done_ = (call);                                                     \
        CHECK(done_.r < 0);                                                                        \
        CHECK(done_.err.kind == (wanted), "(kind %s: %s)", err_kind_name(done_.err.kind),          \
              done_.err.msg);                                                                      \
    } while (0)
