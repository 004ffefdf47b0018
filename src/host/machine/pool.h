/* The warm pool: machines that are booted before a create needs them. */
#pragma once

#include <stdint.h>

struct err;
struct host;
struct machine;
struct pool;
struct runtime_ops;

/* Starts the thread that keeps `size` machines ready. */
int pool_start(struct host *host, const struct runtime_ops *ops, uint32_t size, struct pool **ret,
               struct err *err);

/* Returns a warm machine for an owner, one with this template if possible; NULL when none is ready,
 * those that are ready are left to other owners (host/machine/pool_share.h), or the pool is NULL.
 * The caller owns the reference. */
struct machine *pool_take(struct pool *pool, const struct runtime_ops *ops, const char *owner,
                          const char *template);

/* Ends the machines that hold the template open. */
void pool_drop_template(struct pool *pool, const char *template);

/* Returns the number of machines that are ready. */
uint32_t pool_ready(struct pool *pool);

/* Returns the configured size. */
uint32_t pool_size(struct pool *pool);

/* Sets the size, and ends surplus machines. */
void pool_resize(struct pool *pool, uint32_t size);

/* Tells the pool that a waiting machine has died. */
void pool_note_death(struct pool *pool);

/* Ends the thread and all waiting machines. Accepts NULL. */
void pool_stop(struct pool *pool);

/* Frees the pool, which must outlive the reactor. Accepts NULL. */
void pool_free(struct pool *pool);
