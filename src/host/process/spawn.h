/* Encodes process specs for holt-init, and explains its failures. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct message_failed;
struct message_rlimit;
struct process_spec;

/* Appends the spawn frame: the arguments, and an environment of PATH, HOME, TERM, LANG and the
 * variables of the machine (NULL: none) and of the spec, but none of the daemon's. The frame needs
 * one descriptor, the cgroup. files is the process's limit of descriptors. */
int process_put_spawn(struct buf *out, uint32_t process, const struct process_spec *spec,
                      char *const *machine_env, const struct message_rlimit *files,
                      struct err *err);

/* Writes a one-line message that says what failed and why. */
void process_explain_failure(const struct message_failed *failed, char *into, size_t size);
