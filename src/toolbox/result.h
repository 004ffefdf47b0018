/* From what a tool has said to what its caller gets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sandbox;
struct tool_job;

/* Fills in the result: what has changed, the snapshot, the text cut to its budget. */
void tool_result_finish(struct tool_job *job);

/* The same of a job whose result was kept. */
void tool_result_restore(struct tool_job *job);
