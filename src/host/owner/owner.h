/* Owners: what the objects of each use together, and the ceilings of that. An owner exists while it
 * has objects or ceilings of its own. */
#pragma once

#include "host/owner/ceiling.h"

struct host;

enum ceiling_source {
    SOURCE_NONE,    /* there is no such ceiling */
    SOURCE_DEFAULT, /* owner.* of holt.conf */
    SOURCE_FILE,    /* owner.NAME of holt.conf */
    SOURCE_COMMAND, /* holt owner set, which wins */
};

/* Returns "none", "default", "holt.conf" or "command". */
const char *ceiling_source_name(enum ceiling_source source);

struct owner_info {
    char name[OWNER_NAME_MAX + 1];
    uint64_t used[CEILING_AMOUNTS];
    struct ceilings ceilings; /* in force */
    enum ceiling_source sources[CEILINGS];
};

/* Returns the use and the ceilings of an owner, which may be unknown so far. */
void host_get_owner(struct host *host, const char *name, struct owner_info *ret);

/* The same for a caller whose token is limited to labels: the use is that of the sandboxes that it
 * sees. */
void host_get_owner_for(struct host *host, const struct caller *caller, const char *name,
                        struct owner_info *ret);

/* Lists the owners that have objects or ceilings of their own, by name; the caller frees *ret. */
void host_list_owners(struct host *host, struct owner_info **ret, size_t *ret_count);

/* Computes the time to live of a sandbox of this owner; 0 asks for none and gets the ceiling. Fails
 * with ERR_EXHAUSTED above it. */
int host_limit_ttl(struct host *host, const char *owner, uint64_t asked_ms, uint64_t *ret_ms,
                   struct err *err);

/* A change of the ceilings of an owner by command. */
struct owner_change {
    const char *owner;
    struct ceilings set;     /* those that are set */
    bool is_unset[CEILINGS]; /* back to holt.conf */
};

/* Records the change and applies it to all later requests: all of it, or nothing and an error. What
 * exists already stays, above a ceiling if need be. */
int host_set_owner(struct host *host, const struct owner_change *change, struct err *err);

/* Removes the ceilings that were set by command. ERR_BUSY while the owner has sandboxes: its
 * ceilings would be those of holt.conf at once. ERR_NOT_FOUND if there are none. */
int host_remove_owner(struct host *host, const char *name, struct err *err);
