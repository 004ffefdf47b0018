// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about sandboxes and snapshots: whatever the bytes, a typed refusal or what the
 * host may rely on. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/process_request.h"
#include "api/message/sandbox_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refusal_check(int r, const struct err *err)
{
    assert(r == 0 || err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED);
}

static void sandbox_check(const char *id)
{
    assert(is_handle(id, SANDBOX_NAME_MAX) && !strstr(id, ".."));
}

/* NULL, "" for the template, or a name. */
static void snapshot_check(const char *name)
{
    assert(!name || *name == '\0' || is_handle(name, SNAPSHOT_NAME_MAX));
}

static void create_check(const json_t *object)
{
    cleanup_with(create_request_done) struct create_request request = { 0 };
    const struct sandbox_spec *spec = &request.spec;
    struct err err = { 0 };
    int r = create_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    if (spec->name)
        sandbox_check(spec->name);
    assert(!spec->template || is_name(spec->template));
    assert(!spec->runtime || is_name(spec->runtime));
    assert(spec->label_count <= SANDBOX_LABELS_MAX && (spec->labels || spec->label_count == 0));
    for (size_t i = 0; i < spec->label_count; i++)
        assert(*spec->labels[i].key && !strpbrk(spec->labels[i].value, "\n\r\t\x1b"));
    assert(spec->ttl_ms <= INT64_MAX / 1000000 && spec->idle_timeout_ms <= INT64_MAX / 1000000);
}

static void fork_check(const json_t *object)
{
    struct fork_request request = { 0 };
    struct err err = { 0 };
    int r = fork_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.sandbox);
    snapshot_check(request.from);
    assert(request.count >= 1 && request.count <= FORK_MAX);
}

static void snapshot_request_check(const json_t *object)
{
    struct snapshot_request request = { 0 };
    struct err err = { 0 };
    int r = snapshot_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.sandbox);
    assert(is_handle(request.name, SNAPSHOT_NAME_MAX) && strcmp(request.name, "template") != 0);
    assert(request.kind == SNAPSHOT_NAMED || request.kind == SNAPSHOT_TOOL);
}

static void diff_check(const json_t *object)
{
    struct diff_request request = { 0 };
    struct err err = { 0 };
    int r = diff_request_parse(object, &request, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    sandbox_check(request.sandbox);
    snapshot_check(request.what.from);
    snapshot_check(request.what.to);
}

static void process_check(const json_t *object)
{
    cleanup_with(process_request_done) struct process_request request = { 0 };
    struct err err = { 0 };
    int r = process_request_parse(object, &request, &err);

    refusal_check(r, &err);
    assert(r < 0 || *request.spec.args[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (json_parse_object((const char *)data, size, &object, &err) < 0) {
        assert(err.kind == ERR_INVALID);
        return 0;
    }
    create_check(object);
    fork_check(object);
    snapshot_request_check(object);
    diff_check(object);
    process_check(object);
    return 0;
}
