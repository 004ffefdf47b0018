// SPDX-License-Identifier: Apache-2.0
/* The JSON body of a Run to specs: whatever the bytes, a typed refusal or specs that hold. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/message/run_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void specs_check(const struct run_request *request)
{
    size_t bytes = 0;

    assert(request->process.spec.args[0] && *request->process.spec.args[0]);
    for (char *const *arg = request->process.spec.args; *arg; arg++)
        bytes += strlen(*arg) + 1;
    for (char *const *word = request->process.spec.env; *word; word++) {
        assert(strchr(*word, '=') > *word);
        bytes += strlen(*word) + 1;
    }
    assert(bytes <= PROCESS_ARGS_BYTES_MAX);
    assert(!request->process.spec.cwd || *request->process.spec.cwd == '/');
    assert(!request->process.spec.has_terminal ||
           (request->process.spec.rows && request->process.spec.columns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(run_request_done) struct run_request request = { 0 };
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };
    int r = json_parse_object((const char *)data, size, &object, &err);

    if (r == 0)
        r = run_request_parse(object, &request, &err);
    if (r == 0)
        specs_check(&request);
    else
        assert(err.kind == ERR_INVALID || err.kind == ERR_EXHAUSTED);
    return 0;
}
