/* The table of owners, for the files of the host. */
#pragma once

#include "host/owner/owner.h"

struct config;
struct owner_table;
struct registry;
struct sandbox_limits;

enum { OWNERS_MAX = 100000 }; /* with ceilings by command */

/* What one sandbox or throw-away machine counts for its owner. */
struct owner_charge {
    char owner[OWNER_NAME_MAX + 1];
    uint64_t amounts[CEILING_AMOUNTS];
};

/* Computes the charge of limits and a quota. A limit of 0 is none and counts as all that the
 * machine has; a quota of 0 counts nothing, as the storage cannot enforce one. */
void owner_charge_fill(const char *owner, const struct sandbox_limits *limits, uint64_t quota_bytes,
                       struct owner_charge *ret);

struct owner_table *owner_table_new(void);

/* Accepts NULL. */
void owner_table_free(struct owner_table *table);

/* The host's lock protects the table: the caller of all functions below holds it. */

/* Counts the charge `count` times: all, or none and ERR_EXHAUSTED with the name of the ceiling and
 * the numbers. */
int owner_table_add(struct owner_table *table, const struct owner_charge *charge, size_t count,
                    struct err *err);

/* Counts what exists already, above a ceiling if need be. */
void owner_table_count_in(struct owner_table *table, const struct owner_charge *charge);

/* Undoes one of `count` or a count in. */
void owner_table_subtract(struct owner_table *table, const struct owner_charge *charge);

/* Replaces a charge by another one of the same owner. Only an amount that grows can exceed a
 * ceiling. */
int owner_table_change(struct owner_table *table, const struct owner_charge *from,
                       const struct owner_charge *to, struct err *err);

/* Replaces the ceilings of holt.conf. */
void owner_table_configure(struct owner_table *table, const struct owner_settings *settings);

/* Replaces the ceilings that were set by command (NULL: none). */
void owner_table_set(struct owner_table *table, const char *name, const struct ceilings *set);

/* Copies the ceilings that were set by command. */
void owner_table_get_set(const struct owner_table *table, const char *name, struct ceilings *ret);

/* Returns the number of owners with ceilings by command. */
size_t owner_table_set_count(const struct owner_table *table);

/* Copies the ceilings in force. */
void owner_table_get_ceilings(const struct owner_table *table, const char *name,
                              struct ceilings *ret);

void owner_table_get(const struct owner_table *table, const char *name, struct owner_info *ret);

/* Lists all, in no order; the caller frees *ret. */
void owner_table_list(const struct owner_table *table, struct owner_info **ret, size_t *ret_count);

/* The functions below take the host's lock. */

/* Copies the ceilings in force. */
void host_get_ceilings(struct host *host, const char *owner, struct ceilings *ret);

/* Reads the ceilings that were set by command. Called once, before any sandbox. */
int host_load_owners(struct host *host, struct err *err);

/* Chooses the quota of a sandbox: the one asked for, or the default lowered to the ceiling. Fails
 * where the storage cannot enforce a quota that the ceiling needs. */
int host_choose_quota(const struct host *host, const char *owner, const struct ceilings *ceilings,
                      uint64_t asked_bytes, uint64_t *ret_bytes, struct err *err);
