/* Crash points for tests: HOLT_FAULT=STEP kills the daemon (SIGKILL) when it first reaches that
 * step, HOLT_FAULT=STEP:N the Nth time. Without the variable a step costs one comparison. */
#pragma once

/* Reads the environment; called once, before threads start. */
void fault_init(void);

/* Marks a step. step is a literal such as "create.recorded": the operation, then what it has just
 * done. */
void fault_point(const char *step);
