/* The latest events, in memory. Adding an event never waits for a reader: the ring has a fixed
 * capacity, each reader has its own position, and a reader that falls behind learns how many events
 * it has lost.
 *
 * Numbers begin with 1 and never go back. The last one is in a page that is mapped from a file of
 * the state directory (events.seq), so a restarted daemon continues there, even after kill -9.
 * After a crash of the machine, the numbers that may not have reached the disk are skipped. */
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
    EVENT_FIELDS_MAX = 16 << 10, /* bytes; longer fields are left out */
    EVENT_SANDBOX_SIZE = 32,
    EVENT_NAME_SIZE = 129,
};

/* Reference counted and immutable. */
struct event {
    atomic_int refs;
    unsigned type; /* below 64 */
    uint64_t seq;
    uint64_t time_ms;                 /* since 1970 */
    char sandbox[EVENT_SANDBOX_SIZE]; /* "": none */
    char name[EVENT_NAME_SIZE];       /* of that sandbox; "": none */
    size_t len;
    char fields[]; /* a JSON object as text */
};

/* Drops a reference. Accepts NULL. */
void event_unref(struct event *event);

/* The content of a new event; fields is a JSON object. Texts may be NULL. */
struct event_content {
    unsigned type;
    const char *sandbox;
    const char *name;
    const char *fields;
};

int event_ring_open(int state_fd, struct event_ring **ret, struct err *err);

/* Frees the ring; there must be no reader. Accepts NULL. */
void event_ring_close(struct event_ring *ring);

/* Adds an event. It can be called from any thread and with any lock held but the ring's own; it
 * never blocks. */
void event_ring_add(struct event_ring *ring, const struct event_content *news);

/* Makes readers end after the last event. */
void event_ring_shut(struct event_ring *ring);

/* Returns the number of the last event, 0 if there was none. */
uint64_t event_ring_last(struct event_ring *ring);

enum event_start {
    EVENT_FROM_NOW,
    EVENT_BEHIND_SEQ, /* events after this number */
    EVENT_SINCE_TIME, /* events in the ring since this time, in milliseconds since 1970 */
};

struct event_reader_spec {
    enum event_start start;
    uint64_t value;      /* of EVENT_BEHIND_SEQ and EVENT_SINCE_TIME */
    uint64_t types;      /* a bit for each type */
    const char *sandbox; /* by id or name; NULL: all events */
};

/* Opens a reader. ERR_INVALID for a number that does not exist yet. */
int event_reader_open(struct event_ring *ring, const struct event_reader_spec *spec,
                      struct event_reader **ret, struct err *err);

/* Closes the reader. Accepts NULL. */
void event_reader_close(struct event_reader *reader);

/* Returns the next event with a reference, or NULL; *ret_lost is the number of events lost before
 * it. Does not wait. Must not be called by two threads at a time. */
struct event *event_reader_take(struct event_reader *reader, uint64_t *ret_lost);

/* Waits until there is an event to take. Returns 0, -ETIMEDOUT, -ECANCELED once the peer of
 * watch_fd (a connection; -1: none) has hung up, or -ESHUTDOWN when no event will come any more. */
int event_reader_wait(struct event_reader *reader, int watch_fd, int timeout_ms);
