// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/err.h"
#include "host/codebase/codebase_internal.h"
#include "host/core/host_internal.h"

int codebase_work_begin(struct host *host, struct codebase_work *work, struct err *err)
{
    lock_scope(&host->lock);

    for (const struct codebase_work *each = host->codebase_work; each; each = each->next)
        if (strcmp(each->codebase, work->codebase) == 0)
            return err_set(err, ERR_BUSY, "the codebase is being changed by another request");
    work->next = host->codebase_work;
    host->codebase_work = work;
    return 0;
}

void codebase_work_end(struct host *host, struct codebase_work *work)
{
    struct codebase_work **slot = &host->codebase_work;

    lock_scope(&host->lock);
    while (*slot != work)
        slot = &(*slot)->next;
    *slot = work->next;
}
