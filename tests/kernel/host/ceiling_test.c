// SPDX-License-Identifier: Apache-2.0
/* Ceilings of owners: concurrent creates, runs and forks never exceed them. */
#include <pthread.h>

#include "host/core/share.h"
#include "host/machine/machine.h"
#include "host/owner/owner.h"
#include "kernel/host/host_world.h"

enum { THREADS = 8, CEILING = 3 };

static const struct caller ann = { .role = ROLE_USER, .owner = "ann" };
static const struct caller bob = { .role = ROLE_USER, .owner = "bob" };
static struct err err;

static void ceiling_set(const char *owner, const char *name, const char *value)
{
    struct owner_change change = { .owner = owner };
    enum ceiling which;

    CHECK(ceiling_find(name, &which));
    if (value)
        CHECK_OK(ceiling_parse(&change.set, which, value, &err), &err);
    else
        change.is_unset[which] = true;
    CHECK_OK(host_set_owner(world.host, &change, &err), &err);
}

static uint64_t used(const char *owner, enum ceiling which)
{
    struct owner_info info;

    host_get_owner(world.host, owner, &info);
    return info.used[which];
}

static int create(const struct caller *caller, struct sandbox **ret)
{
    struct sandbox_spec spec = { .caller = caller, .template = "small" };

    return sandbox_create(world.host, &spec, ret, &err);
}

static struct sandbox *created(const struct caller *caller)
{
    struct sandbox *sandbox = NULL;

    CHECK_OK(create(caller, &sandbox), &err);
    return sandbox;
}

struct racer {
    struct sandbox *sandbox;
    struct machine *machine;
    int result;
    struct err err;
    bool is_run;
};

static void *race(void *argument)
{
    struct racer *racer = argument;
    struct sandbox_spec spec = { .caller = &ann, .template = "small" };
    struct machine_spec run = { .caller = &ann, .template = "small" };

    racer->result = racer->is_run ? machine_create(world.host, &run, &racer->machine, &racer->err)
                                  : sandbox_create(world.host, &spec, &racer->sandbox, &racer->err);
    return NULL;
}

static void concurrent_creates_never_exceed(void)
{
    struct racer racers[THREADS] = { { .result = 0 } };
    pthread_t threads[THREADS];
    struct sandbox *other;
    int made = 0;

    ceiling_set("ann", "sandboxes", "3");
    for (size_t i = 0; i < THREADS; i++) {
        racers[i].is_run = i % 2;
        CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        made += racers[i].result == 0;
        CHECK(racers[i].result == 0 || racers[i].err.cause == CAUSE_CEILING_REACHED, "(%s)",
              racers[i].err.msg);
    }
    CHECK(made == CEILING, "(%d)", made);
    CHECK(used("ann", CEILING_SANDBOXES) == CEILING);
    CHECK(create(&ann, &other) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK_TEXT(err.msg, "owner 'ann' has 3 of 3 sandboxes (ceiling owner.sandboxes)");
    world_destroy(created(&bob));
    for (size_t i = 0; i < THREADS; i++) {
        if (racers[i].sandbox)
            world_destroy(racers[i].sandbox);
        if (racers[i].machine) {
            machine_destroy(racers[i].machine);
            machine_unref(racers[i].machine);
        }
    }
    CHECK(used("ann", CEILING_SANDBOXES) == 0 && used("ann", CEILING_MEMORY) == 0);
}

static void a_fork_is_counted_as_a_whole_and_for_the_owner(void)
{
    struct sandbox *sandbox, *forks[4] = { NULL };

    ceiling_set("ann", "sandboxes", "3");
    sandbox = created(&ann);
    CHECK(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &caller_root, .count = 3 }, forks,
                       &err) < 0);
    CHECK_TEXT(err.msg, "owner 'ann' has 1 of 3 sandboxes and asks for 3 more (ceiling "
                        "owner.sandboxes)");
    CHECK(used("ann", CEILING_SANDBOXES) == 1);
    CHECK_OK(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &caller_root, .count = 2 }, forks,
                          &err),
             &err);
    CHECK(used("ann", CEILING_SANDBOXES) == 3 && used(OWNER_ROOT, CEILING_SANDBOXES) == 0);
    CHECK_TEXT(sandbox_owner(forks[1]), "ann");
    world_destroy(forks[0]);
    world_destroy(forks[1]);
    /* A name that exists already undoes the forks before it, and their count. */
    ceiling_set("ann", "sandboxes", "9");
    forks[0] = forks[1] = NULL;
    CHECK_OK(
        sandbox_update(sandbox, &(struct sandbox_change){ .caller = &ann, .name = "fork-2" }, &err),
        &err);
    CHECK(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &ann, .count = 4, .name = "fork" },
                       forks, &err) < 0);
    CHECK(err.kind == ERR_EXISTS, "(%s)", err.msg);
    CHECK(used("ann", CEILING_SANDBOXES) == 1);
    world_destroy(sandbox);
}

static void an_update_counts_what_it_changes(void)
{
    struct sandbox_change more = { .caller = &ann, .limits = { .memory_bytes = 90 << 20 } };
    struct sandbox_change less = { .caller = &ann, .limits = { .memory_bytes = 40 << 20 } };
    struct sandbox_spec spec = { .caller = &ann,
                                 .template = "small",
                                 .limits = { .memory_bytes = 60 << 20 } };
    struct sandbox *first = NULL, *second = NULL;

    ceiling_set("ann", "memory", "100M");
    CHECK_OK(sandbox_create(world.host, &spec, &first, &err), &err);
    CHECK(sandbox_create(world.host, &spec, &second, &err) < 0);
    CHECK_TEXT(err.msg, "owner 'ann' has 60M of 100M memory and asks for 60M more (ceiling "
                        "owner.memory)");
    CHECK_OK(sandbox_update(first, &less, &err), &err);
    CHECK_OK(sandbox_create(world.host, &spec, &second, &err), &err);
    CHECK(sandbox_update(first, &more, &err) < 0 && err.cause == CAUSE_CEILING_REACHED);
    CHECK(used("ann", CEILING_MEMORY) == 100 << 20);
    /* A lowered ceiling affects only what comes next. */
    ceiling_set("ann", "memory", "10M");
    CHECK_OK(sandbox_update(second, &less, &err), &err);
    CHECK(used("ann", CEILING_MEMORY) == 80 << 20);
    world_destroy(first);
    world_destroy(second);
    ceiling_set("ann", "memory", NULL);
}

static void a_time_to_live_stays_below_its_ceiling(void)
{
    struct sandbox_change never = { .caller = &ann, .has_ttl = true };
    struct sandbox_change longer = { .caller = &ann, .has_ttl = true, .ttl_ms = 7200000 };
    struct sandbox_spec spec = { .caller = &ann, .template = "small", .ttl_ms = 7200000 };
    struct sandbox *sandbox = NULL;
    struct sandbox_info info;

    ceiling_set("ann", "ttl", "1h");
    CHECK(sandbox_create(world.host, &spec, &sandbox, &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK_TEXT(err.msg, "a sandbox of owner 'ann' lives at most 1h, not 2h (ceiling owner.ttl)");
    sandbox = created(&ann);
    sandbox_get_info(sandbox, false, &info);
    CHECK(info.expires_ms == info.created_ms + 3600000);
    sandbox_info_done(&info);
    CHECK(sandbox_update(sandbox, &longer, &err) < 0);
    CHECK_OK(sandbox_update(sandbox, &never, &err), &err);
    sandbox_get_info(sandbox, false, &info);
    CHECK(info.expires_ms > 0);
    sandbox_info_done(&info);
    world_destroy(sandbox);
    ceiling_set("ann", "ttl", NULL);
}

static void use_and_ceilings_outlive_the_host(void)
{
    struct sandbox *sandbox = created(&ann);
    uint64_t memory = used("ann", CEILING_MEMORY);
    char id[SANDBOX_ID_MAX];

    ceiling_set("ann", "sandboxes", "1");
    (void)snprintf(id, sizeof(id), "%s", sandbox_id(sandbox));
    sandbox_unref(sandbox);
    host_close(TAKE_PTR(world.host));
    world_start();
    CHECK(used("ann", CEILING_SANDBOXES) == 1 && used("ann", CEILING_MEMORY) == memory);
    CHECK(create(&ann, &sandbox) < 0 && err.cause == CAUSE_CEILING_REACHED);
    CHECK(host_remove_owner(world.host, "ann", &err) < 0 && err.kind == ERR_BUSY);
    CHECK_OK(sandbox_find(world.host, &ann, id, &sandbox, &err), &err);
    world_destroy(sandbox);
    CHECK_OK(host_remove_owner(world.host, "ann", &err), &err);
    CHECK(host_remove_owner(world.host, "ann", &err) < 0 && err.kind == ERR_NOT_FOUND);
    host_close(TAKE_PTR(world.host));
    world_start();
    world_destroy(created(&ann));
    world_destroy(created(&ann));
}

/* The template is root's. */
static void template_share(void)
{
    const struct share_object object = {
        .kind = SHARE_TEMPLATE, .id = "small", .owner = OWNER_ROOT, .name = "small"
    };

    CHECK_OK(share_set(world.host, &object, &(struct sharing){ .is_public = true }, &err), &err);
}

static void all(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    template_share();
    RUN(concurrent_creates_never_exceed);
    RUN(a_fork_is_counted_as_a_whole_and_for_the_owner);
    RUN(an_update_counts_what_it_changes);
    RUN(a_time_to_live_stays_below_its_ceiling);
    RUN(use_and_ceilings_outlive_the_host);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
