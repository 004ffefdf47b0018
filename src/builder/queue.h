/* So many builds go on at a time; the others wait, first come first served. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct build_queue;

/* One place in it, of who waits. */
struct build_turn {
    struct build_turn *next;
};

struct build_queue *build_queue_new(size_t running_max);

/* Nobody waits or runs any more. Accepts NULL. */
void build_queue_free(struct build_queue *queue);

/* Takes the last place, from which it must enter; or quit. */
void build_queue_join(struct build_queue *queue, struct build_turn *turn);
void build_queue_quit(struct build_queue *queue, struct build_turn *turn);

/* Waits for its turn, or until the flag is set: whether it may run, and then has to leave. */
bool build_queue_enter(struct build_queue *queue, struct build_turn *turn,
                       const atomic_bool *is_cancelled);

void build_queue_leave(struct build_queue *queue);

/* Lets those who wait look at their flags. */
void build_queue_wake(struct build_queue *queue);
