// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "builder/queue.h"
#include "check.h"

enum { MANY = 20 };

struct waiting_build {
    struct build_queue *queue;
    struct build_turn turn;
    const char *owner;
    atomic_bool is_cancelled;
    bool has_run;
    pthread_t thread;
};

static atomic_size_t started;
static const char *order[4 * MANY]; /* the owners in the order in which their builds started */
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;

static void *build_main(void *argument)
{
    struct waiting_build *build = argument;

    build->has_run = build_queue_enter(build->queue, &build->turn, &build->is_cancelled);
    if (!build->has_run)
        return NULL;
    (void)pthread_mutex_lock(&order_lock);
    order[started++] = build->owner;
    (void)pthread_mutex_unlock(&order_lock);
    build_queue_leave(build->queue, &build->turn);
    return NULL;
}

static void build_begin(struct waiting_build *build, struct build_queue *queue, const char *owner)
{
    *build = (struct waiting_build){ .queue = queue, .owner = owner };
    build_queue_join(queue, &build->turn, owner);
    CHECK(pthread_create(&build->thread, NULL, build_main, build) == 0);
}

static void build_end(struct waiting_build *build)
{
    CHECK(pthread_join(build->thread, NULL) == 0);
}

/* A build that runs until the test lets it go, so that all others wait. */
static void blocker_begin(struct build_queue *queue, struct build_turn *turn, const char *owner)
{
    static const atomic_bool never;

    build_queue_join(queue, turn, owner);
    CHECK(build_queue_enter(queue, turn, &never));
}

static void many_builds_of_one_owner_do_not_delay_another(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct waiting_build builds[MANY + 2];
    struct build_turn blocker;

    blocker_begin(queue, &blocker, "ann");
    for (size_t i = 0; i < MANY; i++)
        build_begin(&builds[i], queue, "ann");
    build_begin(&builds[MANY], queue, "bob");
    build_begin(&builds[MANY + 1], queue, "bob");
    build_queue_leave(queue, &blocker);
    for (size_t i = 0; i < MANY + 2; i++)
        build_end(&builds[i]);
    CHECK(started == MANY + 2);
    CHECK_TEXT(order[0], "bob");
    CHECK_TEXT(order[1], "ann");
    CHECK_TEXT(order[2], "bob");
    build_queue_free(queue);
}

static void the_builds_of_one_owner_start_in_order(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct waiting_build builds[3];
    struct build_turn blocker;

    blocker_begin(queue, &blocker, "root");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "ann", "bob", "carl" };

        build_begin(&builds[i], queue, names[i]);
    }
    build_queue_leave(queue, &blocker);
    for (size_t i = 0; i < 3; i++)
        build_end(&builds[i]);
    CHECK_TEXT(order[0], "ann");
    CHECK_TEXT(order[1], "bob");
    CHECK_TEXT(order[2], "carl");
    build_queue_free(queue);
}

static void a_free_place_goes_to_the_owner_with_fewer_running(void)
{
    struct build_queue *queue = build_queue_new(3);
    struct build_turn blockers[3];
    struct waiting_build ann, bob;

    blocker_begin(queue, &blockers[0], "bob");
    blocker_begin(queue, &blockers[1], "ann");
    blocker_begin(queue, &blockers[2], "ann");
    build_begin(&ann, queue, "ann");
    build_begin(&bob, queue, "bob");
    build_queue_leave(queue, &blockers[0]);
    build_end(&bob);
    build_end(&ann);
    CHECK_TEXT(order[0], "bob");
    build_queue_leave(queue, &blockers[1]);
    build_queue_leave(queue, &blockers[2]);
    build_queue_free(queue);
}

static void a_cancelled_build_leaves_the_queue(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct waiting_build ann, bob;
    struct build_turn blocker, quitter;

    blocker_begin(queue, &blocker, "root");
    build_begin(&ann, queue, "ann");
    build_begin(&bob, queue, "bob");
    build_queue_join(queue, &quitter, "carl");
    build_queue_quit(queue, &quitter);
    atomic_store(&ann.is_cancelled, true);
    build_queue_wake(queue);
    build_end(&ann);
    CHECK(!ann.has_run);
    build_queue_leave(queue, &blocker);
    build_end(&bob);
    CHECK(bob.has_run && started == 1);
    build_queue_free(queue);
}

int main(void)
{
    RUN(many_builds_of_one_owner_do_not_delay_another);
    RUN(the_builds_of_one_owner_start_in_order);
    RUN(a_free_place_goes_to_the_owner_with_fewer_running);
    RUN(a_cancelled_build_leaves_the_queue);
    return 0;
}
