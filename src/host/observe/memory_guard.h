/* The memory guard: a thread that ends a sandbox which holds so much memory of the kernel, outside
 * of its limit, that others are in danger. Without it the machine runs out of memory, and the
 * kernel's OOM killer does not find the sandbox, whose processes are small. */
#pragma once

#include <stdint.h>

struct err;
struct host;
struct memory_guard;

/* Makes a guard whose thread does not run yet. */
int memory_guard_open(struct host *host, struct memory_guard **ret, struct err *err);

/* Starts the thread, which uses the storage monitor. */
int memory_guard_start(struct memory_guard *guard, struct err *err);

/* Refuses new work, with ERR_EXHAUSTED, while the machine has less memory left than the reserve.
 * Accepts NULL. */
int memory_guard_check(const struct memory_guard *guard, struct err *err);

/* Memory of the machine, and of it what sockets of all namespaces have, in bytes. */
struct memory_now {
    uint64_t total, available;
    uint64_t sockets, sockets_max; /* from sockets_max on the kernel slows all of them down */
};

/* Reads these now; they are 0 where they are unknown. Accepts NULL. */
void memory_guard_read(const struct memory_guard *guard, struct memory_now *ret);

/* Ends the thread; others may still read and check. Accepts NULL. */
void memory_guard_stop(struct memory_guard *guard);

/* Frees a guard that was stopped. Accepts NULL. */
void memory_guard_free(struct memory_guard *guard);
