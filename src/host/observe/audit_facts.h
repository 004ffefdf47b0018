/* What the audit log proves about one sandbox, for a registry that has lost its row or its last
 * changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;

struct audit_facts {
    bool is_created; /* its creation, also by a fork, was complete */
    bool is_fork;
    bool is_destroyed;
    uint32_t generation;                  /* of its files since the last rollback; 0: unknown */
    char template[TEMPLATE_NAME_MAX + 1]; /* "": unknown */
    char name[SANDBOX_NAME_MAX + 1];
};

/* Reads the log for the lines of one sandbox. Without a log nothing is proven; ERR_INTERNAL when
 * the log is damaged. */
int audit_facts_read(int state_fd, const char *sandbox, struct audit_facts *ret, struct err *err);
