/* The ceilings in the registry: one row for each, as text. */
#pragma once

#include "host/owner/ceiling.h"

struct registry;

struct ceiling_row {
    char owner[OWNER_NAME_MAX + 1];
    char name[CEILING_NAME_SIZE];
    char value[CEILING_TEXT_SIZE]; /* "": the row is removed */
};

/* Puts or removes rows in one transaction, and waits for the disk. */
int registry_put_ceilings(struct registry *registry, const struct ceiling_row *rows, size_t count,
                          struct err *err);

/* Removes all rows of an owner; no error when there is none. */
int registry_remove_ceilings(struct registry *registry, const char *owner, struct err *err);

/* Lists all rows; the caller frees the array. */
int registry_list_ceilings(struct registry *registry, struct ceiling_row **ret, size_t *ret_count,
                           struct err *err);
