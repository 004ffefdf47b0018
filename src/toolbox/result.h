/* Makes the result of a job from the output of its tool. */
#pragma once

struct tool_job;

/* Fills in the result: changes, snapshot, the text truncated to its budget. */
void tool_result_finish(struct tool_job *job);

/* Fills in the pointers of a result whose fields and text are set. */
void tool_result_restore(struct tool_job *job);
