/* On whose behalf a call is made, and what it may do. Every object of the host has an owner; a
 * caller sees the objects of its own owner, an admin those of all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/access/label.h"

struct err;

#define OWNER_ROOT "root" /* of the unix socket, of the main token and of the daemon itself */

enum { OWNER_NAME_MAX = 64, CALLER_TOKEN_MAX = 8, CALLER_SCOPE_MAX = 4 };

enum role {
    ROLE_NONE, /* no access at all */
    ROLE_READ, /* sees the objects of its owner and changes nothing */
    ROLE_USER,
    ROLE_ADMIN, /* sees and changes the objects of all owners, and the owners */
    ROLES
};

/* Returns "read-only", "user" or "admin"; "" for ROLE_NONE. */
const char *role_name(enum role role);
bool role_parse(const char *name, enum role *ret);

struct caller {
    enum role role;
    char owner[OWNER_NAME_MAX + 1];
    char token[CALLER_TOKEN_MAX + 1];     /* id; "" for the unix socket and the main token */
    char session[CALLER_TOKEN_MAX + 1];   /* id of the console's session; "": none */
    struct label scope[CALLER_SCOPE_MAX]; /* of what it sees and creates */
    size_t scope_count;
};

/* The administrator of the machine: what comes over the unix socket. */
extern const struct caller caller_root;

/* Sets the caller on whose behalf this thread works, for the audit log; NULL: the daemon itself. */
void caller_set_current(const struct caller *caller);
const struct caller *caller_current(void);

/* Returns whether the caller may change what it sees. */
bool caller_may_change(const struct caller *caller);

bool caller_is_admin(const struct caller *caller);

/* Returns whether the caller may know and change what concerns the whole host: an admin whose token
 * is not limited to labels. */
bool caller_is_host_admin(const struct caller *caller);

/* Returns whether the caller may know the figures of the whole host: a host admin, or root with any
 * role, so that a read-only token suffices to watch a machine. */
bool caller_may_watch_host(const struct caller *caller);

/* Returns whether an object with this owner and these labels exists for the caller. */
bool caller_sees(const struct caller *caller, const char *owner, const struct label *labels,
                 size_t count);

/* Fails with ERR_DENIED unless labels that the caller gives to an object keep it in its scope. */
int caller_check_labels(const struct caller *caller, const struct label *labels, size_t count,
                        struct err *err);

/* Returns how much of a bound of the whole host one owner may use: half of it, so that others
 * always find room; all of it for root, which is alone on most hosts. */
size_t owner_share(const char *owner, size_t max);

/* Fails with ERR_INVALID for a text that is not a name of an owner. */
int owner_check_name(const char *name, struct err *err);
