// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about processes: whatever the bytes, a typed refusal or what the host may rely
 * on. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/message/process_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refusal_check(int r, const struct err *err)
{
    assert(r == 0 || err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED);
}

static void sandbox_check(const char *id)
{
    assert(is_handle(id, SANDBOX_NAME_MAX) && !strstr(id, ".."));
}

/* A tag or a key, or NULL. */
static void word_check(const char *word)
{
    assert(!word || (*word && strlen(word) <= PROCESS_TAG_MAX && !strpbrk(word, "\n\r\t\x1b\x7f")));
}

static void start_check(const json_t *object)
{
    cleanup_with(start_request_done) struct start_request request = { 0 };
    const struct process_spec *spec = &request.process.spec;
    struct err err = { 0 };
    int r = start_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.sandbox);
    word_check(spec->tag);
    word_check(spec->key);
    assert(*spec->args[0] && !spec->is_detached);
    assert(!spec->has_terminal || (spec->rows && spec->columns));
}

static void attach_check(const json_t *object)
{
    struct attach_request request = { 0 };
    struct err err = { 0 };
    int r = attach_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.name.sandbox);
    assert(*request.name.process);
    assert(!request.has_replay ||
           (request.reader.from[PROCESS_OUT] == 0 && request.reader.from[PROCESS_ERR] == 0));
}

static void wait_check(const json_t *object)
{
    struct wait_request request = { 0 };
    struct err err = { 0 };
    int r = wait_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.name.sandbox);
    assert(*request.name.process && request.timeout_ms <= INT64_MAX / 1000000);
}

static void list_check(const json_t *object)
{
    struct list_request request = { 0 };
    struct err err = { 0 };
    int r = list_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.sandbox);
    word_check(request.tag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (json_parse_object((const char *)data, size, &object, &err) < 0) {
        assert(err.kind == ERR_INVALID);
        return 0;
    }
    start_check(object);
    attach_check(object);
    wait_check(object);
    list_check(object);
    return 0;
}
