/* The latest events, in memory. Adding an event never waits for a reader: the ring has a fixed
 * capacity, each reader has its own position, and a reader that falls behind learns how many events
 * it has lost.
 *
 * The ring of the host has all events. Its numbers begin with 1 and never go back. The last one is
 * in a page that is mapped from a file of the state directory (events.seq), so a restarted daemon
 * continues there, even after kill -9. After a crash of the machine, the numbers that may not have
 * reached the disk are skipped.
 *
 * The ring of an owner (host/observe/owner_events.h) has the events of its objects, so that neither
 * the numbers nor the losses tell how much others do. Its numbers begin with the microseconds since
 * 1970 at its creation: they never go back either, without a file. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_reader;
struct event_ring;

enum {
    EVENT_RING_COUNT = 4096,
    EVENT_RING_BYTES = 1 << 20,
    OWNER_RING_COUNT = 1024,
    OWNER_RING_BYTES = 256 << 10,
    EVENT_FIELDS_MAX = 16 << 10, /* bytes; longer fields are left out */
};

/* Reference counted and immutable. */
struct event {
    atomic_int refs;
    unsigned type;       /* below 64 */
    uint64_t time_ms;    /* since 1970 */
    const char *owner;   /* of the object; "": about the host */
    const char *sandbox; /* "": none */
    const char *name;    /* of that sandbox; "": none */
    const char *fields;  /* a JSON object as text */
    size_t len;          /* of the fields */
    size_t size;         /* of the event */
    char texts[];
};

/* The content of a new event; fields is a JSON object. Texts may be NULL. */
struct event_content {
    unsigned type;
    const char *owner;
    const char *sandbox;
    const char *name;
    const char *fields;
};

/* Makes an event that happens now. The caller owns one reference. */
struct event *event_new(const struct event_content *content);

/* Drops a reference. Accepts NULL. */
void event_unref(struct event *event);

int event_ring_open(int state_fd, struct event_ring **ret, struct err *err);

/* Makes the ring of an owner. */
struct event_ring *event_ring_new(void);

/* Frees the ring; there must be no reader. Accepts NULL. */
void event_ring_close(struct event_ring *ring);

bool event_ring_has_readers(struct event_ring *ring);

/* Adds an event, with a reference of the ring's own. It can be called from any thread and with any
 * lock held but the ring's own; it never blocks. */
void event_ring_add(struct event_ring *ring, struct event *event);

/* Makes readers end after the last event. */
void event_ring_shut(struct event_ring *ring);

/* Returns the number of the last event, 0 if there was none. */
uint64_t event_ring_last(struct event_ring *ring);

/* Types of events (enum event_type): a bit for each. */
typedef unsigned __int128 event_set;
#define EVENT_SET_ALL (~(event_set)0)

enum event_start {
    EVENT_FROM_NOW,
    EVENT_BEHIND_SEQ, /* events after this number */
    EVENT_SINCE_TIME, /* events in the ring since this time, in milliseconds since 1970 */
};

struct event_reader_spec {
    enum event_start start;
    uint64_t value; /* of EVENT_BEHIND_SEQ and EVENT_SINCE_TIME */
    event_set types;
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

/* Returns the number of the last event that was taken or skipped. */
uint64_t event_reader_seq(struct event_reader *reader);

/* Returns the number of the last event of the reader's ring. */
uint64_t event_reader_last(struct event_reader *reader);

/* Waits until there is an event to take. Returns 0, -ETIMEDOUT, -ECANCELED once the peer of
 * watch_fd (a connection; -1: none) has hung up, or -ESHUTDOWN when no event will come any more. */
int event_reader_wait(struct event_reader *reader, int watch_fd, int timeout_ms);
