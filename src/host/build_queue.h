/* So many builds go on at a time; the others wait, first come first served. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct build_queue;

struct build_queue *build_queue_new(size_t running_max);

/* Nobody waits or runs any more. Accepts NULL. */
void build_queue_free(struct build_queue *queue);

/* Waits for its turn, or until the flag is set: whether it may run, and then has to leave. */
bool build_queue_enter(struct build_queue *queue, const atomic_bool *is_cancelled);

void build_queue_leave(struct build_queue *queue);

/* Lets those who wait look at their flags. */
void build_queue_wake(struct build_queue *queue);
