/* The latest of what has happened, in memory. Whoever adds never waits for a reader: the ring holds
 * so many events and no more, readers have numbers of their own, and one who comes too late is told
 * how many are gone.
 *
 * Numbers begin with 1 and never go back. The last one is in a page that is mapped from a file of
 * the state directory (events.seq), so the next life of the daemon goes on there, also after a kill
 * -9. When the machine has crashed since, numbers that were never written out are jumped over. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_reader;
struct event_ring;

enum {
    EVENT_RING_COUNT = 4096,
    EVENT_RING_BYTES = 1 << 20,
    EVENT_FIELDS_MAX = 16 << 10, /* bytes of what is longer than that are left out */
    EVENT_SANDBOX_SIZE = 32,
    EVENT_NAME_SIZE = 129,
};

/* Reference counted, and never changed. */
struct event {
    atomic_int refs;
    unsigned type; /* below 64 */
    uint64_t seq;
    uint64_t time_ms;                 /* since 1970 */
    char sandbox[EVENT_SANDBOX_SIZE]; /* "": about none */
    char name[EVENT_NAME_SIZE];       /* of that sandbox; "": it has none */
    size_t len;
    char fields[]; /* the text of a JSON object */
};

/* Accepts NULL. */
void event_unref(struct event *event);

/* What an event is about, and what else there is to say: a JSON object. Texts may be NULL. */
struct event_news {
    unsigned type;
    const char *sandbox;
    const char *name;
    const char *fields;
};

int event_ring_open(int state_fd, struct event_ring **ret, struct err *err);

/* No reader may be left. Accepts NULL. */
void event_ring_close(struct event_ring *ring);

/* From any thread, with any lock held but the ring's own; never waits. */
void event_ring_add(struct event_ring *ring, const struct event_news *news);

/* Nothing more comes: readers end when they have read what there is. */
void event_ring_shut(struct event_ring *ring);

/* The number of the last event; 0: there was none yet. */
uint64_t event_ring_last(struct event_ring *ring);

enum event_start {
    EVENT_FROM_NOW,
    EVENT_BEHIND_SEQ, /* the first event that is wanted is the one behind this number */
    EVENT_SINCE_TIME, /* of those in the ring: milliseconds since 1970 */
};

struct event_reader_spec {
    enum event_start start;
    uint64_t value;      /* of the latter two */
    uint64_t types;      /* a bit for each type that is wanted */
    const char *sandbox; /* by id or name; NULL: about any or none */
};

/* ERR_INVALID for a number that has not been given yet. */
int event_reader_open(struct event_ring *ring, const struct event_reader_spec *spec,
                      struct event_reader **ret, struct err *err);

/* Accepts NULL. */
void event_reader_close(struct event_reader *reader);

/* The next event, with a reference, or NULL; *ret_lost is how many were missed before it, 0 for
 * none. Does not wait. One thread at a time. */
struct event *event_reader_take(struct event_reader *reader, uint64_t *ret_lost);

/* Until there is something to take. 0, -ETIMEDOUT, -ECANCELED once the peer of watch_fd (a
 * connection; -1: none) has hung up, or -ESHUTDOWN when nothing will come any more. */
int event_reader_wait(struct event_reader *reader, int watch_fd, int timeout_ms);
