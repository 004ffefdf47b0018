// SPDX-License-Identifier: Apache-2.0
/* The JSON body of a Run to specs: whatever the bytes, a typed refusal or specs that hold. */
#include <stdint.h>

#include "api/message/process_spec.h"
#include "fuzz/api/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void spec_check(const struct process_spec *spec)
{
    size_t bytes = 0;

    assert(spec->args[0] && *spec->args[0]);
    for (char *const *arg = spec->args; *arg; arg++)
        bytes += strlen(*arg) + 1;
    for (char *const *word = spec->env; *word; word++) {
        assert(strchr(*word, '=') > *word);
        bytes += strlen(*word) + 1;
    }
    assert(bytes <= PROCESS_ARGS_BYTES_MAX);
    assert(!spec->cwd || *spec->cwd == '/');
    assert(!spec->has_terminal || (spec->rows && spec->columns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    struct msg_run_request request;
    struct process_spec spec;
    struct err err = { 0 };
    int r = json_parse_object((const char *)data, size, &object, &err);

    if (r < 0 || !decode(SCHEMA(msg_run_request, &request), object, &arena))
        return 0;
    r = process_spec_fill(request.process, &arena, &spec, &err);
    refusal_check(r, &err);
    if (r == 0)
        spec_check(&spec);
    return 0;
}
