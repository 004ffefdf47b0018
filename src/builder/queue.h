/* Limits the number of builds that run at a time. The next one is of the owner with the fewest
 * running builds, and of these the one whose last build started longest ago; the builds of one
 * owner run in order of arrival. So the builds of one owner do not delay the first one of another.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct build_queue;
struct queue_owner;

/* A build that waits or runs. */
struct build_turn {
    struct build_turn *next;
    struct queue_owner *owner;
};

struct build_queue *build_queue_new(size_t running_max);

/* Frees a queue without builds. Accepts NULL. */
void build_queue_free(struct build_queue *queue);

/* Append a build of an owner to the queue, which then enters or quits; and remove it. */
void build_queue_join(struct build_queue *queue, struct build_turn *turn, const char *owner);
void build_queue_quit(struct build_queue *queue, struct build_turn *turn);

/* Waits for its turn or until the flag is set. Returns whether the build may run; it then leaves at
 * its end. */
bool build_queue_enter(struct build_queue *queue, struct build_turn *turn,
                       const atomic_bool *is_cancelled);

/* Ends the run of a build. */
void build_queue_leave(struct build_queue *queue, struct build_turn *turn);

/* Makes waiting builds check their flags. */
void build_queue_wake(struct build_queue *queue);
