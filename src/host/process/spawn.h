/* Encodes process specs for holt-init, and explains its failures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

struct buf;
struct err;
struct process_spec;

/* Appends the spawn frame: the arguments, and an environment of PATH, HOME, TERM, LANG and the
 * variables of the machine and of the spec, but none of the daemon's. The frame needs one
 * descriptor, the cgroup. */
struct spawn_place {
    char *const *env;            /* of the machine; NULL: none */
    struct message_rlimit files; /* the process's limit of descriptors */
    bool is_cell;                /* in the container of gVisor */
};
int process_put_spawn(struct buf *out, uint32_t process, const struct process_spec *spec,
                      const struct spawn_place *place, struct err *err);

/* Writes a one-line message that says what failed and why. */
void process_explain_failure(const struct message_failed *failed, char *into, size_t size);
