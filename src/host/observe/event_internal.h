/* Events as the host's own files make them. */
#pragma once

#include "host/observe/event.h"

struct process_table;
struct machine;
struct process_end;

/* As machine_event, about a process of the sandbox that has this process table. */
void process_table_event(const struct process_table *process_table, struct host *host,
                         enum event_type type, json_t *fields);

/* What there is to say of a process that has ended. */
json_t *process_end_fields(const char *process, const struct process_end *end);

/* About something in a machine, which may be locked: of a type that is not recorded. */
void machine_event(const struct machine *machine, enum event_type type, json_t *fields);
