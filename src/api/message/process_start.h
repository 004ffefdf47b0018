/* Starting a process, or finding the one that an earlier call with the same key has started. */
#pragma once

struct err;
struct process;
struct process_spec;
struct record;
struct sandbox;

struct process_started_as {
    struct process *process; /* with a reference; NULL: it was joined */
    struct record *record;   /* with a reference */
};

/* The process that has the spec's key. ERR_INVALID when it has other arguments. */
int process_join(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                 struct err *err);

/* ERR_INVALID for a key whose process has other arguments. */
int process_start_or_join(struct sandbox *sandbox, const struct process_spec *spec,
                          struct process_started_as *ret, struct err *err);
