/* Limits the number of builds that run at a time; the others wait in order of arrival. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct build_queue;

/* A waiting build. */
struct build_turn {
    struct build_turn *next;
};

struct build_queue *build_queue_new(size_t running_max);

/* Frees a queue without builds. Accepts NULL. */
void build_queue_free(struct build_queue *queue);

/* Append a build to the queue, which then enters or quits; and remove it. */
void build_queue_join(struct build_queue *queue, struct build_turn *turn);
void build_queue_quit(struct build_queue *queue, struct build_turn *turn);

/* Waits for its turn or until the flag is set. Returns whether the build may run; it then leaves at
 * its end. */
bool build_queue_enter(struct build_queue *queue, struct build_turn *turn,
                       const atomic_bool *is_cancelled);

/* Ends the run of a build. */
void build_queue_leave(struct build_queue *queue);

/* Makes waiting builds check their flags. */
void build_queue_wake(struct build_queue *queue);
