/* Functions that emit events, for the files of the host. */
#pragma once

#include "host/observe/event.h"

struct process_table;
struct machine;
struct process_end;

/* Emits an event about a process of the sandbox that owns the process table, as machine_event does.
 */
void process_table_event(const struct process_table *process_table, struct host *host,
                         enum event_type type, json_t *fields);

/* Returns the fields of the event that a process has ended. */
json_t *process_end_fields(const char *process, const struct process_end *end);

/* Emits an event about a machine, which may be locked. The type must not be a recorded one. */
void machine_event(const struct machine *machine, enum event_type type, json_t *fields);

/* Adds a line about a sandbox to the audit log, which is on disk with the next line of an event.
 * Takes the fields. */
void host_note(struct host *host, const char *record, const char *owner, const char *sandbox,
               json_t *fields);

/* Records the start of a process if the caller of this thread is not the owner of the machine. */
void machine_record_start(const struct machine *machine, const char *process);
