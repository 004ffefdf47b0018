/* The processes of one machine, as the files about machines see them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/process/process.h"

/* How long an operation waits for starts that are under way; holt-init needs milliseconds. */
enum { PROCESS_START_WAIT_MS = 5000 };

struct frame;
struct machine;

/* Handles a frame about one process, on the reactor's thread. Returns false when the frame is not
 * acceptable. */
bool process_frame(struct machine *machine, const struct frame *frame);

/* Gives an end to every process that has none, after the guest is gone or has refused its root.
 * The caller holds the machine's lock. */
void process_end_all(struct machine *machine);

/* Empties the machine's list; afterwards only readers hold references to the processes. */
void process_drop_all(struct machine *machine);

/* Waits until the guest has started, or refused, every process that it was sent. Returns false if
 * it has not at this time of clock_ms. */
bool process_wait_all_started(struct machine *machine, uint64_t deadline_ms);

/* Sets the killer that the outcome of every running process will name. */
void process_set_killer_all(struct machine *machine, enum killer killer);

/* Adds a process for each cgroup that the guest of an adopted machine has forgotten: background
 * children may still run in it. */
void process_adopt_groups(struct machine *machine);

/* Makes the guest forget ended processes, and removes their cgroups unless something runs in them.
 * Returns whether some are left for later. */
bool process_sweep(struct machine *machine);
