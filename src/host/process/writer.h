/* One thread that brings to disk what processes write and what became of them, and tells guests
 * what they need not keep any more. */
#pragma once

#include <stdbool.h>

struct err;
struct host;
struct process;
struct process_writer;

int process_writer_start(struct host *host, struct process_writer **ret, struct err *err);

/* There is something to do for a process of a sandbox: at once, or within a moment, when it may be
 * over already. Takes a reference of its own. */
void process_writer_add(struct process_writer *writer, struct process *process);
void process_writer_add_later(struct process_writer *writer, struct process *process);

/* Does what is left to do and ends. Accepts NULL. */
void process_writer_stop(struct process_writer *writer);

/* Asks the thread for a sign of life, and whether it has given one since. */
void process_writer_ask(struct process_writer *writer);
bool process_writer_has_answered(struct process_writer *writer);
