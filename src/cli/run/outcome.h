/* The exit status of `holt run` and its like. */
#pragma once

struct holt_end;

/* Reports an outcome that the exit status alone would hide, and returns the exit status. */
int run_outcome(const char *command, const struct holt_end *end);
