// SPDX-License-Identifier: Apache-2.0
/* The ring of events: writers never wait, losses are reported, numbers never decrease. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "host/observe/event_ring.h"
#include "host/observe/owner_events.h"

enum { WRITERS = 4, EACH = 20000, READERS = 3 };

static char dir[] = "/tmp/holt-events-test.XXXXXX";
static int dir_fd = -EBADF;
static struct event_ring *ring;

static void start(void)
{
    struct err err = { 0 };

    CHECK(event_ring_open(dir_fd, &ring, &err) == 0, "%s", err.msg);
}

static void stop(void)
{
    event_ring_close(ring);
    ring = NULL;
}

static void start_anew(void)
{
    stop();
    (void)unlinkat(dir_fd, "events.seq", 0);
    start();
}

static void add_content(const struct event_content *content)
{
    struct event *event = event_new(content);

    event_ring_add(ring, event);
    event_unref(event);
}

static void add(unsigned type, const char *sandbox, const char *name)
{
    add_content(&(struct event_content){ type, NULL, sandbox, name, "{\"a\":1}" });
}

static struct event_reader *open_reader(struct event_reader_spec spec)
{
    struct event_reader *reader = NULL;
    struct err err = { 0 };

    if (spec.types == 0)
        spec.types = EVENT_SET_ALL;
    CHECK(event_reader_open(ring, &spec, &reader, &err) == 0, "%s", err.msg);
    return reader;
}

/* Takes one: its number, or 0 when there is none. */
static uint64_t take(struct event_reader *reader, uint64_t *ret_lost)
{
    struct event *event = event_reader_take(reader, ret_lost);
    uint64_t seq = event ? event_reader_seq(reader) : 0;

    event_unref(event);
    return seq;
}

static void a_reader_gets_what_it_asked_for(void)
{
    struct event_reader *all, *one, *named, *typed;
    uint64_t lost;

    start_anew();
    add(1, "sb-1", "first");
    all = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ });
    one = open_reader((struct event_reader_spec){ .start = EVENT_FROM_NOW, .sandbox = "sb-2" });
    named =
        open_reader((struct event_reader_spec){ .start = EVENT_SINCE_TIME, .sandbox = "first" });
    typed = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ, .types = 1 << 2 });
    add(2, "sb-2", NULL);
    add(3, NULL, NULL);
    for (uint64_t seq = 1; seq <= 3; seq++)
        CHECK(take(all, &lost) == seq && lost == 0);
    CHECK(take(all, &lost) == 0 && lost == 0);
    CHECK(take(one, &lost) == 2 && take(one, &lost) == 0);
    CHECK(take(named, &lost) == 1 && take(named, &lost) == 0);
    CHECK(take(typed, &lost) == 2 && take(typed, &lost) == 0);
    event_reader_close(all);
    event_reader_close(one);
    event_reader_close(named);
    event_reader_close(typed);
}

static void an_event_has_what_was_said(void)
{
    static char long_fields[EVENT_FIELDS_MAX + 2];
    struct event_reader *reader;
    struct event *event;
    uint64_t lost;

    start_anew();
    reader = open_reader((struct event_reader_spec){ .start = EVENT_FROM_NOW });
    add(7, "sb-1", "name");
    event = event_reader_take(reader, &lost);
    CHECK(event && event->type == 7 && event->time_ms > 0);
    CHECK_TEXT(event->sandbox, "sb-1");
    CHECK_TEXT(event->name, "name");
    CHECK_TEXT(event->fields, "{\"a\":1}");
    event_unref(event);
    memset(long_fields, 'x', sizeof(long_fields) - 1);
    add_content(&(struct event_content){ .type = 1, .fields = long_fields });
    event = event_reader_take(reader, &lost);
    CHECK(event);
    CHECK_TEXT(event->fields, "{}");
    event_unref(event);
    event_reader_close(reader);
}

static void one_who_comes_late_is_told(void)
{
    struct event_reader *reader;
    struct event *kept;
    uint64_t lost;

    start_anew();
    reader = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ });
    add(0, NULL, NULL);
    kept = event_reader_take(reader, &lost);
    for (int i = 0; i < EVENT_RING_COUNT + 10; i++)
        add(0, "sb-1", NULL);
    CHECK(take(reader, &lost) == 12 && lost == 10, "(lost %lu)", (unsigned long)lost);
    CHECK(take(reader, &lost) == 13 && lost == 0);
    CHECK(kept && kept->sandbox[0] == '\0', "(whoever holds one has it)");
    event_unref(kept);
    event_reader_close(reader);
}

/* By bytes, too. */
static void the_ring_is_bounded(void)
{
    static char fields[EVENT_FIELDS_MAX];
    struct event_reader *reader;
    uint64_t lost = 0, count = 0;

    start_anew();
    memset(fields, 'x', sizeof(fields) - 1);
    for (int i = 0; i < 1000; i++)
        add_content(&(struct event_content){ .fields = fields });
    reader = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ });
    CHECK(take(reader, &lost) > 0 && lost > 0);
    for (count = 1; take(reader, &(uint64_t){ 0 }) > 0;)
        count++;
    CHECK(count + lost == 1000);
    CHECK(count * EVENT_FIELDS_MAX <= EVENT_RING_BYTES && count > 32, "(%lu)",
          (unsigned long)count);
    event_reader_close(reader);
}

static void numbers_go_on_in_the_next_life(void)
{
    struct event_reader *reader;
    struct err err = { 0 };
    uint64_t lost;
    int status;
    pid_t pid;

    start_anew();
    add(0, NULL, NULL);
    stop();
    pid = fork();
    if (pid == 0) {
        start();
        for (int i = 0; i < 100; i++)
            add(0, NULL, NULL);
        (void)kill(getpid(), SIGKILL);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    start();
    CHECK(event_ring_last(ring) == 101);
    CHECK(event_reader_open(ring,
                            &(struct event_reader_spec){ .start = EVENT_BEHIND_SEQ, .value = 102 },
                            &reader, &err) < 0 &&
          err.kind == ERR_INVALID);
    reader = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ, .value = 40 });
    CHECK(event_reader_wait(reader, -1, 0) == 0, "(there is something to tell)");
    CHECK(take(reader, &lost) == 0 && lost == 61);
    CHECK(event_reader_wait(reader, -1, 0) == -ETIMEDOUT);
    add(0, NULL, NULL);
    CHECK(take(reader, &lost) == 102 && lost == 0);
    event_reader_close(reader);
}

/* As after a crash of the machine, when the page may be old. */
static void after_a_crash_numbers_jump(void)
{
    char wrong = 'x';
    cleanup_close int fd = -EBADF;

    start_anew();
    add(0, NULL, NULL);
    stop();
    fd = openat(dir_fd, "events.seq", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, &wrong, 1, 0) == 1);
    start();
    CHECK(event_ring_last(ring) > 1000000);
}

static void waiting_ends_for_a_reason(void)
{
    struct event_reader *reader;
    uint64_t lost;
    int pair[2];

    start_anew();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    reader = open_reader((struct event_reader_spec){ .start = EVENT_FROM_NOW, .types = 2 });
    add(0, NULL, NULL);
    CHECK(event_reader_wait(reader, pair[0], 1) == -ETIMEDOUT, "(what it does not want)");
    add(1, NULL, NULL);
    CHECK(event_reader_wait(reader, pair[0], -1) == 0 && take(reader, &lost) == 2);
    (void)close(pair[1]);
    CHECK(event_reader_wait(reader, pair[0], -1) == -ECANCELED);
    add(1, NULL, NULL);
    event_ring_shut(ring);
    CHECK(event_reader_wait(reader, pair[0], -1) == 0 && take(reader, &lost) == 3);
    CHECK(event_reader_wait(reader, pair[0], -1) == -ESHUTDOWN);
    (void)close(pair[0]);
    event_reader_close(reader);
}

static void *write_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < EACH; i++)
        add((unsigned)i % 64, "sb-1", NULL);
    return NULL;
}

struct tally {
    atomic_uint pause_every; /* 0: it reads as fast as it can */
    uint64_t seen, lost;
};

static void *read_all(void *argument)
{
    struct tally *tally = argument;
    struct event_reader *reader =
        open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ });
    uint64_t last = 0;
    int r;

    while ((r = event_reader_wait(reader, -1, 1000)) == 0 || r == -ETIMEDOUT) {
        uint64_t lost, seq = take(reader, &lost);

        tally->lost += lost;
        if (seq == 0)
            continue;
        CHECK(seq == last + lost + 1, "(%lu behind %lu, lost %lu)", (unsigned long)seq,
              (unsigned long)last, (unsigned long)lost);
        last = seq;
        tally->seen++;
        if (tally->pause_every && tally->seen % tally->pause_every == 0)
            (void)usleep(2000);
    }
    CHECK(r == -ESHUTDOWN);
    event_reader_close(reader);
    return NULL;
}

static void writers_never_wait_for_slow_readers(void)
{
    struct tally tallies[READERS] = { { .pause_every = 0 },
                                      { .pause_every = 100 },
                                      { .pause_every = 1 } };
    pthread_t writers[WRITERS], readers[READERS];

    start_anew();
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_all, &tallies[i]) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&writers[i], NULL, write_many, NULL) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_join(writers[i], NULL) == 0);
    CHECK(event_ring_last(ring) == WRITERS * EACH);
    tallies[2].pause_every = 0; /* it has made its point */
    event_ring_shut(ring);
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
        CHECK(tallies[i].seen + tallies[i].lost == WRITERS * EACH, "(reader %d)", i);
    }
    CHECK(tallies[2].lost > 0);
}

static int reader_open(struct event_ring *of, void *context)
{
    const struct event_reader_spec spec = { .start = EVENT_BEHIND_SEQ, .types = EVENT_SET_ALL };
    struct err err = { 0 };

    return event_reader_open(of, &spec, context, &err);
}

static void owner_add(struct owner_events *events, const char *owner, const char *sandbox)
{
    owner_events_publish(events, ring,
                         &(struct event_content){ .owner = owner, .sandbox = sandbox });
}

static void take_of(struct event_reader *reader, const char *sandbox)
{
    uint64_t lost, before = event_reader_seq(reader);
    struct event *event = event_reader_take(reader, &lost);

    CHECK(event && lost == 0);
    CHECK_TEXT(event->sandbox, sandbox);
    CHECK(event_reader_seq(reader) == before + 1, "(no number tells of others)");
    event_unref(event);
}

static void an_owner_has_only_its_own_events(void)
{
    struct owner_events *events = owner_events_new();
    struct event_reader *ann = NULL, *root = NULL;
    uint64_t lost;

    start_anew();
    owner_add(events, "ann", "sb-1");
    owner_add(events, "bob", "sb-2");
    owner_add(events, NULL, "");
    owner_add(events, "ann", "sb-3");
    CHECK(owner_events_use(events, "ann", &(struct ring_use){ reader_open, &ann }) == 0);
    CHECK(owner_events_use(events, OWNER_ROOT, &(struct ring_use){ reader_open, &root }) == 0);
    take_of(ann, "sb-1");
    take_of(ann, "sb-3");
    take_of(root, "");
    CHECK(!event_reader_take(ann, &lost) && !event_reader_take(root, &lost));
    for (int i = 0; i < OWNER_RINGS_MAX + 10; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "o%d", i);
        owner_add(events, name, "sb-9");
    }
    owner_add(events, "ann", "sb-4");
    take_of(ann, "sb-4"); /* a ring with a reader stays */
    owner_events_shut(events);
    CHECK(event_reader_wait(ann, -1, -1) == -ESHUTDOWN);
    event_reader_close(ann);
    event_reader_close(root);
    owner_events_free(events);
}

static void *publish_many(void *argument)
{
    for (int i = 0; i < EACH; i++)
        owner_add(argument, "ann", "sb-1");
    return NULL;
}

/* Reads while others write, so that few events are lost. */
static void *read_times(void *argument)
{
    struct event_reader *reader = argument;
    uint64_t lost, last_ms = 0;
    int r;

    while ((r = event_reader_wait(reader, -1, 1000)) == 0 || r == -ETIMEDOUT) {
        struct event *event = event_reader_take(reader, &lost);

        if (!event)
            continue;
        CHECK(event->time_ms >= last_ms, "(%lu behind %lu)", (unsigned long)event->time_ms,
              (unsigned long)last_ms);
        last_ms = event->time_ms;
        event_unref(event);
    }
    CHECK(r == -ESHUTDOWN && last_ms > 0);
    event_reader_close(reader);
    return NULL;
}

static void times_are_in_the_order_of_numbers(void)
{
    struct owner_events *events = owner_events_new();
    struct event_reader *of_all, *of_owner = NULL;
    pthread_t writers[WRITERS], readers[2];

    start_anew();
    of_all = open_reader((struct event_reader_spec){ .start = EVENT_BEHIND_SEQ });
    CHECK(owner_events_use(events, "ann", &(struct ring_use){ reader_open, &of_owner }) == 0);
    CHECK(pthread_create(&readers[0], NULL, read_times, of_all) == 0);
    CHECK(pthread_create(&readers[1], NULL, read_times, of_owner) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&writers[i], NULL, publish_many, events) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_join(writers[i], NULL) == 0);
    event_ring_shut(ring);
    owner_events_shut(events);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(readers[i], NULL) == 0);
    owner_events_free(events);
}

static void all(void)
{
    CHECK(mkdtemp(dir));
    dir_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    CHECK(dir_fd >= 0);
    RUN(an_owner_has_only_its_own_events);
    RUN(times_are_in_the_order_of_numbers);
    RUN(a_reader_gets_what_it_asked_for);
    RUN(an_event_has_what_was_said);
    RUN(one_who_comes_late_is_told);
    RUN(the_ring_is_bounded);
    RUN(numbers_go_on_in_the_next_life);
    RUN(after_a_crash_numbers_jump);
    RUN(waiting_ends_for_a_reason);
    RUN(writers_never_wait_for_slow_readers);
    stop();
    CHECK(unlinkat(dir_fd, "events.seq", 0) == 0 || errno == ENOENT);
    (void)close(dir_fd);
    CHECK(rmdir(dir) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
