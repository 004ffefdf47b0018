/* From what a client asks for to what holt-init is told, and back to words when it fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct message_failed;
struct process_spec;

/* Appends the spawn frame: the arguments, and an environment of PATH, HOME, TERM, LANG and what was
 * asked for, nothing of the daemon's own. The frame wants one descriptor, the control group. */
int process_put_spawn(struct buf *out, uint32_t process, const struct process_spec *spec,
                      struct err *err);

/* One line for a person: what could not be done and why. */
void process_explain_failure(const struct message_failed *failed, char *into, size_t size);
