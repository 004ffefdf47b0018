// SPDX-License-Identifier: Apache-2.0
/* Messages from the daemon to a tool worker, and replies of a worker: the same bytes as both. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "toolbox/worker.h"
#include "wire/tool.h"

enum { INPUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t sum; /* so that no read is optimised away */

static void touch(const struct tool_text *text)
{
    for (size_t i = 0; i <= text->len; i++)
        sum ^= (uint8_t)text->data[i];
    if (text->data[text->len] != '\0')
        abort();
}

static void touch_value(const struct tool_value *value)
{
    if (value->type >= TOOL_TYPES || value->count > TOOL_LIST_MAX)
        abort();
    if (value->type == TOOL_TEXT)
        touch(&value->text);
    for (size_t i = 0; value->type == TOOL_TEXTS && i < value->count; i++)
        touch(&value->texts[i]);
    for (size_t i = 0; value->type == TOOL_EDITS && i < value->count; i++) {
        touch(&value->edits[i].old_text);
        touch(&value->edits[i].new_text);
    }
    if (value->type == TOOL_FLAG && value->number != 0 && value->number != 1)
        abort();
}

/* Valid values are encoded to the same bytes. */
static void values_check(const char *data, size_t size)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(INPUT_MAX);
    struct tool_values values = { .count = 0 };

    if (tool_get_values(data, size, &values) < 0)
        return;
    for (size_t i = 0; i < values.count; i++)
        touch_value(&values.at[i]);
    if (tool_put_values(&out, values.at, values.count) < 0 || out.len != size ||
        memcmp(out.data, data, size) != 0)
        abort();
    tool_values_done(&values);
}

static void answer_check(const struct tool_worker_reply *reply)
{
    const struct tool_outcome *outcome = &reply->outcome;

    if (reply->change_count > TOOL_EVENTS_MAX || reply->content.len > TOOL_CONTENT_MAX ||
        outcome->flags & ~(uint32_t)TOOL_ALL_FLAGS || strlen(outcome->mime) > TOOL_MIME_MAX ||
        !(outcome->flags & TOOL_IS_IMAGE) != (outcome->mime[0] == '\0'))
        abort();
    for (size_t i = 0; i < reply->change_count; i++)
        if (reply->changes[i].path[0] != '/' || strstr(reply->changes[i].path, "/../") ||
            (reply->changes[i].kind != 'A' && reply->changes[i].kind != 'M'))
            abort();
}

/* Receives at most step bytes at a time. */
static int reply_receive(const char *data, size_t size, size_t step, struct tool_worker_reply *ret)
{
    struct tool_worker_parser parser = { .in.max = INPUT_MAX };
    int r = 0;

    for (size_t at = 0; r == 0 && at < size; at += step) {
        if (buf_add(&parser.in, data + at, size - at < step ? size - at : step) < 0)
            abort();
        r = tool_worker_parse(&parser, ret);
    }
    buf_done(&parser.in);
    return r;
}

/* The result does not depend on how the bytes arrive, except for what follows the end. */
static void answers_check(const char *data, size_t size)
{
    struct tool_worker_reply at_once = { .content.max = TOOL_CONTENT_MAX };
    struct tool_worker_reply in_steps = { .content.max = TOOL_CONTENT_MAX };
    int r = reply_receive(data, size, size, &at_once),
        steps_r = reply_receive(data, size, 1, &in_steps);

    if (r == 1)
        answer_check(&at_once);
    if (steps_r == 1)
        answer_check(&in_steps);
    if ((r == 1 && steps_r != 1) || (r == 0) != (steps_r == 0))
        abort();
    if (r == 1 && (at_once.content.len != in_steps.content.len ||
                   at_once.change_count != in_steps.change_count ||
                   at_once.outcome.flags != in_steps.outcome.flags ||
                   (at_once.content.len > 0 &&
                    memcmp(at_once.content.data, in_steps.content.data, at_once.content.len) != 0)))
        abort();
    tool_worker_reply_done(&at_once);
    tool_worker_reply_done(&in_steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    values_check((const char *)data, size);
    answers_check((const char *)data, size);
    return 0;
}
