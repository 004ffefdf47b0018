/* The process writer: a thread that writes output and outcomes of processes to disk, and
 * acknowledges output to the guests. */
#pragma once

#include <stdbool.h>

struct err;
struct host;
struct process;
struct process_writer;

int process_writer_start(struct host *host, struct process_writer **ret, struct err *err);

/* Queues a process of a sandbox, at once or after LATER_MS, when it may have ended already.
 * Takes a reference. */
void process_writer_add(struct process_writer *writer, struct process *process);
void process_writer_add_later(struct process_writer *writer, struct process *process);

/* Handles all queued processes and ends the thread. Accepts NULL. */
void process_writer_stop(struct process_writer *writer);

/* Wakes the thread, and returns whether it has responded since. */
void process_writer_ask(struct process_writer *writer);
bool process_writer_has_answered(struct process_writer *writer);
