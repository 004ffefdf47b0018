/* The owners of objects of the object store: each has the "owner" and the "labels" of the token
 * that made it. Objects of earlier versions have neither, and are root's. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct caller;

/* Makes the caller the owner of a new object. */
void e2b_object_own(json_t *object, const struct caller *caller);

/* Returns the name of the owner, which is valid as long as the object. */
const char *e2b_object_owner(const json_t *object);

/* Returns whether the object exists for the caller. */
bool e2b_object_is_seen(const json_t *object, const struct caller *caller);

/* Returns the object of a list that exists for the caller and whose field has this value, or NULL.
 * Those of the caller's own owner come first: an admin sees equal names of several owners. */
json_t *e2b_object_pick(const json_t *list, const struct caller *caller, const char *field,
                        const char *value);
