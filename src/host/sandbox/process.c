// SPDX-License-Identifier: Apache-2.0
/* Finds processes of a sandbox, running or ended. */
#include "host/process/process.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/machine/machine_internal.h"
#include "host/process/record_internal.h"
#include "host/process/table.h"
#include "host/sandbox/sandbox_internal.h"

static int process_not_found(const struct sandbox *sandbox, const char *what, struct err *err)
{
    return err_refuse(err, CAUSE_PROCESS_NOT_FOUND, "no process '%.40s' in sandbox '%s'", what,
                      sandbox->info.id);
}

int sandbox_find_record(struct sandbox *sandbox, const char *id, struct record **ret,
                        struct err *err)
{
    *ret = process_table_find(sandbox->process_table, id);
    return *ret ? 0 : process_not_found(sandbox, id, err);
}

int sandbox_find_record_by_key(struct sandbox *sandbox, const char *key, struct record **ret,
                               struct err *err)
{
    *ret = process_table_find_key(sandbox->process_table, key);
    return *ret ? 0 : process_not_found(sandbox, key, err);
}

void sandbox_list_records(struct sandbox *sandbox, struct record ***ret, size_t *ret_count)
{
    *ret = process_table_list(sandbox->process_table, ret_count);
}

static int process_find_running(struct sandbox *sandbox, const char *id, struct process **ret,
                                struct err *err)
{
    struct machine *machines[2];
    int r = -ESRCH;

    lock_take(&sandbox->lock);
    machines[0] = sandbox->machine ? machine_ref(sandbox->machine) : NULL;
    machines[1] = sandbox->second ? machine_ref(sandbox->second) : NULL;
    lock_release(&sandbox->lock);
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
        if (r < 0 && machines[i])
            r = process_find(machines[i], id, ret, err);
        machine_unref(machines[i]);
    }
    return r == -ESRCH ? process_not_found(sandbox, id, err) : r;
}

int sandbox_find_process(struct sandbox *sandbox, const char *id, struct process **ret,
                         struct err *err)
{
    struct record *record = process_table_find(sandbox->process_table, id);
    int r;

    if (!record)
        return process_not_found(sandbox, id, err);
    r = record_is_over(record) ? -ESRCH : process_find_running(sandbox, id, ret, err);
    if (r < 0)
        r = err_refuse(err, CAUSE_PROCESS_ENDED, "process '%s' has ended", record->id);
    record_unref(record);
    return r;
}
