/* What the owner of a template or a volume shares: with named owners, or with all of this host.
 * Others may then use it and see it in lists, and never change it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/access/caller.h"
#include "host/registry/registry.h"

struct err;
struct host;

enum { SHARES_MAX = 256 };

/* With what an object is to be shared; neither: it becomes private. */
struct sharing {
    const char *const *owners;
    size_t owner_count;
    bool is_public;
};

/* An object that the caller may share. */
struct share_object {
    enum share_kind kind;
    const char *id; /* of a volume, or the name of a template in the store */
    const char *owner, *name;
};

/* A word for a template or a volume, NAME or OWNER/NAME, in parts. */
struct share_word {
    bool has_owner;
    char owner[OWNER_NAME_MAX + 1]; /* the caller's, if the word has none */
    const char *name;
};

/* Splits a word. Returns false if it cannot be one. */
bool share_word_split(const char *word, const struct caller *caller, struct share_word *ret);

/* Returns 1 if the object is shared with the caller's owner or with all, else 0. A caller that is
 * limited to labels is only reached by what is shared with all. */
int share_reaches(struct host *host, enum share_kind kind, const char *object,
                  const struct caller *caller, struct err *err);

/* Replaces what an object is shared with, and records it in the audit log before. Fails with
 * ERR_INVALID for owners and is_public together, or for a bad name of an owner. */
int share_set(struct host *host, const struct share_object *object, const struct sharing *sharing,
              struct err *err);
