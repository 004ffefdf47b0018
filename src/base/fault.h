/* Places where a test may end the daemon: HOLT_FAULT=STEP kills it (SIGKILL) when it comes to that
 * step for the first time, HOLT_FAULT=STEP:N at the Nth. Without the variable a step costs one
 * comparison. */
#pragma once

/* Reads the environment; called once, before threads start. */
void fault_init(void);

/* step is a literal, "create.recorded": operation, then what has just been done. */
void fault_point(const char *step);
