/* What the path permissions of a sandbox protect from its changes: nothing below the level write is
 * committed, or taken from another sandbox. */
#pragma once

#include "host/view/permission.h"

struct err;
struct sandbox;

struct protection {
    struct permissions permissions;
    const char *top; /* the mount point of the codebase */
};

int protection_open(struct sandbox *sandbox, struct protection *ret, struct err *err);
void protection_done(struct protection *protection);

/* Checks a path relative to the top of the codebase. ERR_DENIED, with the rule, if it may not be
 * changed. */
int protection_check(const struct protection *protection, const char *path, struct err *err);

/* Does the same for an absolute path of the sandbox. */
int protection_check_absolute(const struct protection *protection, const char *path,
                              struct err *err);
