// SPDX-License-Identifier: Apache-2.0
#include "api/message/process_start.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"

static bool is_same(char *const *one, char *const *other)
{
    while (*one && *other && strcmp(*one, *other) == 0) {
        one++;
        other++;
    }
    return !*one && !*other;
}

int process_join(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                 struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    struct record_info info;
    int r = sandbox_find_record_by_key(sandbox, spec->key, &record, err);

    if (r < 0)
        return r;
    record_get(record, &info);
    if (!info.spec->args || !is_same(info.spec->args, spec->args)) {
        (void)err_set(err, ERR_INVALID,
                      "the idempotency key belongs to process '%s', which has other arguments",
                      info.id);
        return err_remedy(err, "use a new key for another command");
    }
    *ret = TAKE_PTR(record);
    return 0;
}

int process_start_or_join(struct sandbox *sandbox, const struct process_spec *spec,
                          struct process_started_as *ret, struct err *err)
{
    struct process_started_as started = { .process = NULL };
    int r = sandbox_exec(sandbox, spec, &started.process, err);

    if (r == 0)
        started.record = record_ref(process_record(started.process));
    else if (err->cause == CAUSE_PROCESS_EXISTS)
        r = process_join(sandbox, spec, &started.record, err);
    if (r == 0)
        *ret = started;
    return r;
}
