// SPDX-License-Identifier: Apache-2.0
/* The templates of the host as its own parts use them; owned_template.c has what callers see. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/core/owned_template.h"
#include "host/machine/pool.h"
#include "host/observe/event_internal.h"
#include "host/observe/owner_events.h"
#include "host/owner/owner_internal.h"
#include "host/registry/registry.h"
#include "store/store.h"

enum { REAP_WAIT_MS = 10000 };

void host_wait_reaped(struct host *host)
{
    uint64_t deadline_ms = clock_after_ms(REAP_WAIT_MS);
    lock_scope(&host->lock);

    while (host->reaping > 0 && cond_wait_until(&host->changed, &host->lock, deadline_ms))
        ;
}

int host_set_template_owner(struct host *host, const char *name, const char *owner, struct err *err)
{
    return registry_put_template_owner(host->registry, name, owner, err);
}

int host_get_template_owner(struct host *host, const char *name, char **ret, struct err *err)
{
    return registry_get_template_owner(host->registry, name, ret, err);
}

void host_release_template(struct host *host, const char *name)
{
    lock_take(&host->lock);
    if (strcmp(host->warm_template, name) == 0)
        (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s",
                       host->default_template);
    lock_release(&host->lock);
    pool_drop_template(host->pool, name);
}

bool host_is_default_template(const struct host *host, const char *name)
{
    return strcmp(host->default_template, name) == 0;
}

int host_remove_template(struct host *host, const char *name, struct err *err)
{
    struct template_record record = { .owner = OWNER_ROOT };
    struct err ignored;
    int r;

    host_release_template(host, name);
    (void)registry_get_template(host->registry, name, &record, &ignored);
    r = template_remove(host->store, name, err);
    if (r < 0 && err->kind == ERR_BUSY) {
        host_wait_reaped(host);
        r = template_remove(host->store, name, err);
    }
    if (r == 0)
        template_layers_collect(host->store);
    if (r == 0)
        (void)registry_put_template_owner(host->registry, name, NULL, &ignored);
    fault_point("template.removed");
    if (r == 0)
        owned_template_release(host, name);
    if (r == 0)
        owner_event(host, record.owner, EVENT_TEMPLATE_REMOVED,
                    json_pack("{s:s}", "template", name));
    return r;
}

int host_choose_template(struct host *host, const struct caller *caller, const char *wanted,
                         char *ret, struct err *err)
{
    struct template_record record;
    int r = owned_template_find(host, caller, wanted, &record, err);

    if (r == 0)
        (void)snprintf(ret, TEMPLATE_NAME_MAX + 1, "%s", record.store_name);
    return r;
}
