// SPDX-License-Identifier: Apache-2.0
#include "host/observe/event.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/audit.h"
#include "host/observe/event_internal.h"
#include "host/observe/event_ring.h"
#include "host/observe/metrics_internal.h"
#include "host/observe/owner_events.h"
#include "host/process/table.h"
#include "host/registry/registry.h"
#include "host/sandbox/name.h"
#include "host/sandbox/sandbox_internal.h"

/* The names for subscribers and for the audit log; NULL: not recorded. */
static const struct {
    const char *name;
    const char *record;
} types[EVENT_TYPES] = {
    [EVENT_DAEMON_STARTED] = { "daemon.started", "daemon-start" },
    [EVENT_DAEMON_STOPPING] = { "daemon.stopping", NULL },
    [EVENT_DAEMON_STOPPED] = { "daemon.stopped", "daemon-stop" },
    [EVENT_CONFIG_RELOADED] = { "config.reloaded", "config-reload" },
    [EVENT_CONFIG_REFUSED] = { "config.refused", NULL },
    [EVENT_STORAGE_OK] = { "storage.ok", NULL },
    [EVENT_STORAGE_DEGRADED] = { "storage.degraded", NULL },
    [EVENT_STORAGE_FULL] = { "storage.full", NULL },
    [EVENT_STORAGE_FAILED] = { "storage.failed", NULL },
    [EVENT_RESOURCE_LOW] = { "resource.low", NULL },
    [EVENT_RESOURCE_OK] = { "resource.ok", NULL },
    [EVENT_SANDBOX_CREATED] = { "sandbox.created", "create" },
    [EVENT_SANDBOX_FORKED] = { "sandbox.forked", "fork" },
    [EVENT_SANDBOX_EXPORTED] = { "sandbox.exported", "export" },
    [EVENT_SANDBOX_IMPORTED] = { "sandbox.imported", "import" },
    [EVENT_SANDBOX_STARTED] = { "sandbox.started", "start" },
    [EVENT_SANDBOX_PAUSED] = { "sandbox.paused", "pause" },
    [EVENT_SANDBOX_DEEP_PAUSED] = { "sandbox.deep-paused", "deep-pause" },
    [EVENT_SANDBOX_RESUMED] = { "sandbox.resumed", "resume" },
    [EVENT_SANDBOX_STOPPED] = { "sandbox.stopped", "stop" },
    [EVENT_SANDBOX_LOST] = { "sandbox.lost", "lost" },
    [EVENT_SANDBOX_FAILED] = { "sandbox.failed", NULL },
    [EVENT_SANDBOX_EXPIRED] = { "sandbox.expired", NULL },
    [EVENT_SANDBOX_EXHAUSTED] = { "sandbox.exhausted", NULL },
    [EVENT_SANDBOX_LIMITED] = { "sandbox.limited", NULL },
    [EVENT_SANDBOX_ADOPTED] = { "sandbox.adopted", "adopt" },
    [EVENT_SANDBOX_RECOVERED] = { "sandbox.recovered", "recover" },
    [EVENT_SANDBOX_ROLLED_BACK] = { "sandbox.rolled-back", "rollback" },
    [EVENT_SANDBOX_UPDATED] = { "sandbox.updated", "update" },
    [EVENT_SANDBOX_DESTROYED] = { "sandbox.destroyed", "destroy" },
    [EVENT_TURN_COMPLETED] = { "turn.completed", "turn" },
    [EVENT_SNAPSHOT_CREATED] = { "snapshot.created", "snapshot" },
    [EVENT_SNAPSHOT_REMOVED] = { "snapshot.removed", "remove-snapshot" },
    [EVENT_SNAPSHOT_UPDATED] = { "snapshot.updated", "update-snapshot" },
    [EVENT_SNAPSHOT_PRUNED] = { "snapshot.pruned", "prune" },
    [EVENT_TEMPLATE_IMPORTED] = { "template.imported", NULL },
    [EVENT_TEMPLATE_COMMITTED] = { "template.committed", "commit" },
    [EVENT_TEMPLATE_REMOVED] = { "template.removed", NULL },
    [EVENT_TEMPLATE_SHARED] = { "template.shared", "template-share" },
    [EVENT_TEMPLATE_PUSHED] = { "template.pushed", "template-push" },
    [EVENT_REGISTRY_LOGIN] = { "registry.login", "registry-login" },
    [EVENT_REGISTRY_LOGOUT] = { "registry.logout", "registry-logout" },
    [EVENT_PROCESS_STARTED] = { "process.started", NULL },
    [EVENT_PROCESS_EXITED] = { "process.exited", NULL },
    [EVENT_PROCESS_OOM] = { "process.oom", NULL },
    [EVENT_PROCESS_RESTARTED] = { "process.restarted", NULL },
    [EVENT_PROCESS_READY] = { "process.ready", NULL },
    [EVENT_PORT_OPENED] = { "port.opened", NULL },
    [EVENT_PORT_CLOSED] = { "port.closed", NULL },
    [EVENT_SHELL_OPENED] = { "shell.opened", NULL },
    [EVENT_SHELL_CLOSED] = { "shell.closed", NULL },
    [EVENT_TOOL_EXECUTED] = { "tool.executed", NULL },
    [EVENT_TOKEN_CREATED] = { "token.created", "token-create" },
    [EVENT_TOKEN_REMOVED] = { "token.removed", "token-remove" },
    [EVENT_CONSOLE_LOGIN] = { "console.login", "console-login" },
    [EVENT_CONSOLE_ENDED] = { "console.ended", "console-end" },
    [EVENT_VOLUME_CREATED] = { "volume.created", "volume-create" },
    [EVENT_VOLUME_REMOVED] = { "volume.removed", "volume-remove" },
    [EVENT_VOLUME_SHARED] = { "volume.shared", "volume-share" },
    [EVENT_REGISTRY_INCOMPLETE] = { "registry.incomplete", "registry-incomplete" },
    [EVENT_VOLUME_UNRECORDED] = { "volume.unrecorded", NULL },
    [EVENT_SANDBOX_LEAKED] = { "sandbox.leaked", NULL },
    [EVENT_SECRET_SET] = { "secret.set", "secret-set" },
    [EVENT_SECRET_ROTATED] = { "secret.rotated", "secret-rotate" },
    [EVENT_SECRET_REMOVED] = { "secret.removed", "secret-remove" },
    [EVENT_OWNER_CHANGED] = { "owner.changed", "owner-change" },
    [EVENT_CODEBASE_ADDED] = { "codebase.added", "codebase-add" },
    [EVENT_CODEBASE_REMOVED] = { "codebase.removed", "codebase-remove" },
    [EVENT_CODEBASE_COMMITTED] = { "codebase.committed", "codebase-commit" },
    [EVENT_CODEBASE_APPLIED] = { "codebase.applied", "codebase-apply" },
    [EVENT_CODEBASE_BRANCHED] = { "codebase.branched", "codebase-branch" },
    [EVENT_CODEBASE_REBASED] = { "codebase.rebased", "codebase-rebase" },
    [EVENT_CODEBASE_MERGED] = { "codebase.merged", "codebase-merge" },
    [EVENT_CODEBASE_DISCARDED] = { "codebase.discarded", "codebase-discard" },
    [EVENT_CODEBASE_UNAVAILABLE] = { "codebase.unavailable", "codebase-unavailable" },
    [EVENT_PERMISSIONS_CHANGED] = { "permissions.changed", "permissions-change" },
    [EVENT_PERMISSION_DENIED] = { "permission.denied", "permission-deny" },
    [EVENT_BACKUP_CREATED] = { "backup.created", "backup-create" },
    [EVENT_BACKUP_REMOVED] = { "backup.removed", "backup-remove" },
    [EVENT_VOLUME_ADOPTED] = { "volume.adopted", "volume-adopt" },
};

/* The names for the audit log of what is recorded only if an admin acts on an object of another
 * owner. */
static const char *const records_of_admins[EVENT_TYPES] = {
    [EVENT_TEMPLATE_IMPORTED] = "template-import",
    [EVENT_TEMPLATE_REMOVED] = "template-remove",
    [EVENT_PORT_OPENED] = "port-forward",
    [EVENT_SHELL_OPENED] = "shell-open",
    [EVENT_TOOL_EXECUTED] = "tool",
};

_Static_assert(EVENT_TYPES <= 8 * sizeof(event_set), "a set has a bit for each type");

const char *event_type_name(enum event_type type)
{
    return type < EVENT_TYPES ? types[type].name : "";
}

event_set event_types_matching(const char *pattern)
{
    event_set found = 0;

    for (unsigned i = 0; i < EVENT_TYPES; i++)
        if (fnmatch(pattern, types[i].name, 0) == 0)
            found |= (event_set)1 << i;
    return found;
}

/* What an event is about. */
struct subject {
    const char *owner;   /* NULL: the host */
    const char *sandbox; /* NULL: none */
    const char *name;    /* of the sandbox; NULL: none */
};

/* Sends the event to subscribers. */
static void event_publish(struct host *host, enum event_type type, const struct subject *subject,
                          const json_t *fields)
{
    cleanup_free char *text = fields ? json_dumps(fields, JSON_COMPACT) : NULL;
    const struct event_content content = { .type = type,
                                           .owner = subject->owner,
                                           .sandbox = subject->sandbox,
                                           .name = subject->name,
                                           .fields = text };

    metrics_count_event(host->metrics, type);
    owner_events_publish(host->owner_events, host->events, &content);
}

static void audit_count_failure(struct host *host, const struct err *err)
{
    lock_take(&host->lock);
    host->audit_failures++;
    (void)snprintf(host->audit_error, sizeof(host->audit_error), "%s", err->msg);
    lock_release(&host->lock);
}

/* Returns the owner of what the caller acts on if that is another one, else NULL. */
static const char *foreign_owner(const struct subject *subject, const json_t *fields)
{
    const struct caller *caller = caller_current();
    const char *owner =
        subject->owner ? subject->owner : json_string_value(json_object_get(fields, "owner"));

    return caller && owner && strcmp(caller->owner, owner) != 0 ? owner : NULL;
}

/* Returns the details of a line of the audit log: the fields, the owner of the object, and the
 * caller if it has a token or acts on an object of another owner. */
static json_t *audit_details(const struct subject *subject, const json_t *fields)
{
    json_t *details = fields ? json_copy((json_t *)(uintptr_t)fields) : json_object();
    const struct caller *caller = caller_current();

    if (subject->owner)
        (void)json_object_set_new(details, "owner", json_string(subject->owner));
    if (foreign_owner(subject, fields))
        (void)json_object_set_new(details, "by", json_string(caller->owner));
    if (caller && caller->token[0])
        (void)json_object_set_new(details, "byToken", json_string(caller->token));
    if (caller && caller->session[0])
        (void)json_object_set_new(details, "bySession", json_string(caller->session));
    return details;
}

static void event_record(struct host *host, const char *record, const struct subject *subject,
                         const json_t *fields)
{
    struct err err = { 0 };

    if (audit_add(host->audit, record, subject->sandbox, audit_details(subject, fields), &err) == 0)
        return;
    audit_count_failure(host, &err);
    (void)registry_sync(host->registry, &err); /* its line would have been the proof */
}

/* Writes the audit log before it notifies subscribers, so that these find the record. Takes the
 * fields. */
static void event_emit(struct host *host, enum event_type type, const struct subject *subject,
                       json_t *fields)
{
    cleanup_json json_t *owned = fields;
    const char *record = types[type].record;

    if (!record && foreign_owner(subject, owned))
        record = records_of_admins[type];
    if (record)
        event_record(host, record, subject, owned);
    event_publish(host, type, subject, owned);
}

void host_event(struct host *host, enum event_type type, json_t *fields)
{
    event_emit(host, type, &(struct subject){ .owner = NULL }, fields);
}

void owner_event(struct host *host, const char *owner, enum event_type type, json_t *fields)
{
    event_emit(host, type, &(struct subject){ .owner = owner }, fields);
}

void sandbox_event(struct sandbox *sandbox, enum event_type type, json_t *fields)
{
    char name[SANDBOX_NAME_MAX + 1];
    const struct subject subject = { sandbox->info.owner, sandbox->info.id, name };

    sandbox_name_copy(sandbox->info.name, name);
    event_emit(sandbox->host, type, &subject, fields);
}

void process_table_event(const struct process_table *process_table, struct host *host,
                         enum event_type type, json_t *fields)
{
    cleanup_json json_t *owned = fields;
    char name[SANDBOX_NAME_MAX + 1];
    const struct subject subject = { process_table_owner(process_table),
                                     process_table_sandbox(process_table), name };

    assert(!types[type].record);
    sandbox_name_copy(process_table_sandbox_name(process_table), name);
    event_publish(host, type, &subject, owned);
}

void machine_event(const struct machine *machine, enum event_type type, json_t *fields)
{
    cleanup_json json_t *owned = fields;
    const struct subject subject = { .owner = machine->creator.owner, .sandbox = machine->id };

    assert(!types[type].record);
    if (machine->process_table)
        process_table_event(machine->process_table, machine->host, type, TAKE_PTR(owned));
    else
        event_publish(machine->host, type, &subject, owned);
}

void machine_record_start(const struct machine *machine, const char *process)
{
    const struct process_table *table = machine->process_table;
    const struct subject subject = {
        .owner = table ? process_table_owner(table) : machine->creator.owner,
        .sandbox = table ? process_table_sandbox(table) : machine->id,
    };
    cleanup_json json_t *fields = NULL;

    if (!foreign_owner(&subject, NULL))
        return;
    fields = json_pack("{s:s}", "process", process);
    event_record(machine->host, "process-start", &subject, fields);
}

void host_note(struct host *host, const char *record, const char *owner, const char *sandbox,
               json_t *fields)
{
    cleanup_json json_t *owned = fields;
    const struct subject subject = { .owner = owner, .sandbox = sandbox };
    struct err err = { 0 };

    if (audit_note(host->audit, record, sandbox, audit_details(&subject, owned), &err) < 0)
        audit_count_failure(host, &err);
}

json_t *process_end_fields(const char *process, const struct process_end *end)
{
    json_t *fields = json_pack("{s:s, s:s, s:i, s:I}", "process", process, "outcome",
                               process_outcome_name(end->outcome), "exitCode", end->exit_code,
                               "durationMs", (json_int_t)end->duration_ms);

    if (fields && end->reason[0])
        (void)json_object_set_new(fields, "reason", json_text(end->reason));
    return fields;
}

struct watch {
    const struct event_reader_spec *spec;
    struct event_reader **ret;
    struct err *err;
};

static int watch_open(struct event_ring *ring, void *context)
{
    const struct watch *watch = context;

    return event_reader_open(ring, watch->spec, watch->ret, watch->err);
}

int host_watch(struct host *host, const struct caller *caller, const struct event_reader_spec *spec,
               struct event_reader **ret, struct err *err)
{
    struct watch watch = { spec, ret, err };

    if (caller_is_admin(caller))
        return watch_open(host->events, &watch);
    return owner_events_use(host->owner_events, caller->owner,
                            &(struct ring_use){ watch_open, &watch });
}
