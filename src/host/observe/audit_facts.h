/* What the audit log proves about sandboxes and shared volumes, for a registry that has lost a row
 * or its last changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;

struct audit_facts {
    char id[SHARED_VOLUME_ID_MAX + 1]; /* of a sandbox or of a shared volume */
    bool is_created;                   /* its creation, also by a fork, was complete */
    bool is_fork;
    bool is_destroyed;
    uint32_t generation;                  /* of its files since the last rollback; 0: unknown */
    char template[TEMPLATE_NAME_MAX + 1]; /* "": unknown */
    char name[SANDBOX_NAME_MAX + 1];
    char owner[OWNER_NAME_MAX + 1]; /* "": unknown */
};

/* The facts about several ids, sorted by them. */
struct audit_facts_list {
    struct audit_facts *items;
    size_t count;
};

/* Adds an id to the list; audit_facts_read comes after the last one. */
void audit_facts_add(struct audit_facts_list *list, const char *id);

/* Reads the log once for all ids of the list. Without a log nothing is proven; ERR_INTERNAL when
 * the log is damaged: then the list has what was before the damage. */
int audit_facts_read(int state_fd, struct audit_facts_list *list, struct err *err);

/* Returns the facts about an id of the list, or empty ones. */
struct audit_facts audit_facts_find(const struct audit_facts_list *list, const char *id);

void audit_facts_done(struct audit_facts_list *list);
