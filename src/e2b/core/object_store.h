/* The object store: small objects of E2B's clients that are not sandboxes, each with an "id", in
 * one file per kind below the state directory. */
#pragma once

#include <jansson.h>

struct e2b_objects;
struct err;

enum e2b_objects_kind { OBJECTS_SNAPSHOTS, OBJECTS_SECRETS, OBJECTS_TEMPLATES, OBJECTS_KINDS };

int e2b_objects_open(const char *state_dir, struct e2b_objects **ret, struct err *err);

/* Accepts NULL. */
void e2b_objects_close(struct e2b_objects *objects);

/* Returns a copy of all objects of a kind, oldest first. */
json_t *e2b_objects_list(struct e2b_objects *objects, enum e2b_objects_kind kind);

/* Returns a copy of the object whose field has this value, or NULL. */
json_t *e2b_objects_find(struct e2b_objects *objects, enum e2b_objects_kind kind, const char *field,
                         const char *value);

/* Adds an object, or replaces the one with its id. With a unique field, fails with ERR_EXISTS if
 * another object of the same owner has the same value. On disk when this returns. */
int e2b_objects_put(struct e2b_objects *objects, enum e2b_objects_kind kind, const json_t *object,
                    const char *unique, struct err *err);

/* Changes the objects of a kind atomically: change() gets a copy of the list, oldest first, which
 * replaces the list unless it fails. On disk when this returns. */
typedef int (*e2b_objects_fn)(json_t *list, void *context, struct err *err);
int e2b_objects_change(struct e2b_objects *objects, enum e2b_objects_kind kind,
                       e2b_objects_fn change, void *context, struct err *err);

/* Returns the object of a list whose field has this value, or NULL. */
json_t *e2b_objects_pick(const json_t *list, const char *field, const char *value);

/* ERR_NOT_FOUND. */
int e2b_objects_remove(struct e2b_objects *objects, enum e2b_objects_kind kind, const char *id,
                       struct err *err);
