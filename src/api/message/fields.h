/* Fields that many requests have, each checked at the door. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct label;

/* Text where proto3 makes no difference between absent and empty: NULL for both. */
int field_text(const json_t *object, const char *name, const char **ret, struct err *err);

/* The same for what names a template or a runtime. */
int field_name(const json_t *object, const char *name, const char **ret, struct err *err);

/* Text that must be there. */
int field_needed(const json_t *object, const char *name, const char **ret, struct err *err);

/* A time in milliseconds that still fits when it is added to now. */
int field_duration(const json_t *object, const char *name, uint64_t *ret, struct err *err);

/* "sandboxId", which must be there: a sandbox's id or name. */
int field_sandbox(const json_t *object, const char **ret, struct err *err);

/* The name that a sandbox is to have, or NULL. */
int field_sandbox_name(const json_t *object, const char **ret, struct err *err);

/* A tag or a key of at most max bytes: printed by others, so it must not move their cursor. NULL
 * where it is empty. */
int field_word(const json_t *object, const char *name, size_t max, const char **ret,
               struct err *err);

/* The name of a snapshot, or NULL. */
int field_snapshot(const json_t *object, const char *name, const char **ret, struct err *err);

/* The same, but it must be there. */
int field_snapshot_needed(const json_t *object, const char *name, const char **ret,
                          struct err *err);

/* "labels": an array for the caller to free, NULL when there are none. */
int field_labels(const json_t *object, struct label **ret, size_t *ret_count, struct err *err);
