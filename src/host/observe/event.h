/* Events: subscribers receive all of them; the audit log records some for good. docs/events.md
 * lists the types with their fields. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/observe/event_ring.h"

struct caller;
struct err;
struct event_reader;
struct event_reader_spec;
struct host;
struct sandbox;

enum event_type {
    EVENT_DAEMON_STARTED,
    EVENT_DAEMON_STOPPING,
    EVENT_DAEMON_STOPPED,
    EVENT_CONFIG_RELOADED,
    EVENT_CONFIG_REFUSED,
    EVENT_STORAGE_OK,
    EVENT_STORAGE_DEGRADED,
    EVENT_STORAGE_FULL,
    EVENT_STORAGE_FAILED,
    EVENT_RESOURCE_LOW,
    EVENT_RESOURCE_OK,
    EVENT_SANDBOX_CREATED,
    EVENT_SANDBOX_FORKED,
    EVENT_SANDBOX_EXPORTED,
    EVENT_SANDBOX_IMPORTED,
    EVENT_SANDBOX_STARTED,
    EVENT_SANDBOX_PAUSED,
    EVENT_SANDBOX_DEEP_PAUSED,
    EVENT_SANDBOX_RESUMED,
    EVENT_SANDBOX_STOPPED,
    EVENT_SANDBOX_LOST,
    EVENT_SANDBOX_FAILED,
    EVENT_SANDBOX_EXPIRED,
    EVENT_SANDBOX_ADOPTED,
    EVENT_SANDBOX_RECOVERED,
    EVENT_SANDBOX_ROLLED_BACK,
    EVENT_SANDBOX_DESTROYED,
    EVENT_SANDBOX_UPDATED,
    EVENT_TURN_COMPLETED,
    EVENT_SNAPSHOT_CREATED,
    EVENT_SNAPSHOT_REMOVED,
    EVENT_SNAPSHOT_UPDATED,
    EVENT_SNAPSHOT_PRUNED,
    EVENT_TEMPLATE_IMPORTED,
    EVENT_TEMPLATE_COMMITTED,
    EVENT_TEMPLATE_REMOVED,
    EVENT_TEMPLATE_SHARED,
    EVENT_TEMPLATE_PUSHED,
    EVENT_REGISTRY_LOGIN,
    EVENT_REGISTRY_LOGOUT,
    EVENT_PROCESS_STARTED,
    EVENT_PROCESS_EXITED,
    EVENT_PROCESS_OOM,
    EVENT_PROCESS_RESTARTED,
    EVENT_PROCESS_READY,
    EVENT_PORT_OPENED,
    EVENT_PORT_CLOSED,
    EVENT_SHELL_OPENED,
    EVENT_SHELL_CLOSED,
    EVENT_TOOL_EXECUTED,
    EVENT_TOKEN_CREATED,
    EVENT_TOKEN_REMOVED,
    EVENT_CONSOLE_LOGIN,
    EVENT_CONSOLE_ENDED,
    EVENT_VOLUME_CREATED,
    EVENT_VOLUME_REMOVED,
    EVENT_VOLUME_SHARED,
    EVENT_REGISTRY_INCOMPLETE,
    EVENT_VOLUME_UNRECORDED,
    EVENT_VOLUME_ADOPTED,
    EVENT_SANDBOX_EXHAUSTED,
    EVENT_OWNER_CHANGED,
    EVENT_SANDBOX_LIMITED,
    EVENT_SANDBOX_LEAKED,
    EVENT_SECRET_SET,
    EVENT_SECRET_ROTATED,
    EVENT_SECRET_REMOVED,
    EVENT_CODEBASE_ADDED,
    EVENT_CODEBASE_REMOVED,
    EVENT_CODEBASE_COMMITTED,
    EVENT_CODEBASE_APPLIED,
    EVENT_CODEBASE_BRANCHED,
    EVENT_CODEBASE_REBASED,
    EVENT_CODEBASE_MERGED,
    EVENT_CODEBASE_DISCARDED,
    EVENT_CODEBASE_UNAVAILABLE,
    EVENT_PERMISSIONS_CHANGED,
    EVENT_PERMISSION_DENIED,
    EVENT_BACKUP_CREATED,
    EVENT_BACKUP_REMOVED,
    EVENT_TYPES
};

/* Returns the name of the type: "sandbox.created". */
const char *event_type_name(enum event_type type);

/* Returns the set of types whose names match a shell pattern. */
event_set event_types_matching(const char *pattern);

/* Emits an event that concerns no sandbox. fields (an object, taken) may be NULL. Recorded types
 * are written to the audit log, with the caller of this thread, before this returns, so the caller
 * must hold no lock; failed writes are counted and shown by health. */
void host_event(struct host *host, enum event_type type, json_t *fields);

/* Emits an event about an object of an owner that is no sandbox, as host_event does. */
void owner_event(struct host *host, const char *owner, enum event_type type, json_t *fields);

/* Emits an event about a sandbox, as host_event does. */
void sandbox_event(struct sandbox *sandbox, enum event_type type, json_t *fields);

/* Opens a reader of the events of this host for an admin, and of those of the caller's owner for
 * others; it is closed before the host. */
int host_watch(struct host *host, const struct caller *caller, const struct event_reader_spec *spec,
               struct event_reader **ret, struct err *err);
