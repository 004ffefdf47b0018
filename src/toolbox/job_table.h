/* The table of running jobs with an id, and the threads that drive jobs whose clients have
 * disconnected. There is one per host. */
#pragma once

struct tool_job_table;
struct tool_job;

struct tool_job_table *tool_job_table_new(void);

/* Waits for all threads, which end because all machines are gone, and frees the table. */
void tool_job_table_close(struct tool_job_table *jobs);

/* Adds a job and returns NULL, or returns the job that has the same id, with a reference. */
struct tool_job *tool_job_table_enter(struct tool_job_table *jobs, struct tool_job *job);

/* Returns the job that has the same id, with a reference; NULL: none. */
struct tool_job *tool_job_table_find(struct tool_job_table *jobs, const struct tool_job *job);

/* Removes a job, if it is in the table. */
void tool_job_table_leave(struct tool_job_table *jobs, struct tool_job *job);

/* Starts a thread that drives the job to its end and takes over the caller's reference. Returns
 * -EAGAIN when the limit of threads is reached. */
int tool_job_table_adopt(struct tool_job_table *jobs, struct tool_job *job);
