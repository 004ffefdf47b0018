/* Where tool calls that have an id meet: those that are going on, and the threads that see to an
 * end what clients have gone away from. One for a host. */
#pragma once

struct tool_job_table;
struct tool_job;

struct tool_job_table *tool_job_table_new(void);

/* Waits until no thread is left: all machines are gone, so each comes to its end. */
void tool_job_table_close(struct tool_job_table *jobs);

/* Puts a job on the job table, unless there is one with its id already: then that, with a
 * reference. */
struct tool_job *tool_job_table_enter(struct tool_job_table *jobs, struct tool_job *job);
void tool_job_table_leave(struct tool_job_table *jobs, struct tool_job *job);

/* A thread drives it to its end from now on, and takes the caller's reference: 0, or -EAGAIN when
 * there are as many as there may be. */
int tool_job_table_adopt(struct tool_job_table *jobs, struct tool_job *job);
