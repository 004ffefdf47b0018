/* What host_pulse needs to ask with; must outlive the reactor. */
#pragma once

struct pulse;

struct pulse *pulse_new(void);
void pulse_free(struct pulse *pulse);
