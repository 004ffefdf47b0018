/* The latest events of each owner, in a ring for each (host/observe/event_ring.h). */
#pragma once

struct event_content;
struct event_ring;
struct owner_events;

/* Owners whose events are kept; that of the least recently used one without readers goes first. */
enum { OWNER_RINGS_MAX = 1024 };

struct owner_events *owner_events_new(void);

/* Frees the rings; there must be no reader. Accepts NULL. */
void owner_events_free(struct owner_events *events);

/* Makes an event that happens now, and adds it to the ring of all events and to that of its owner;
 * one about the host to that of root. Both rings have events in the same order, which is that of
 * their times. */
void owner_events_publish(struct owner_events *events, struct event_ring *all,
                          const struct event_content *content);

/* Calls use with the ring of an owner, which stays while it has readers. Returns its result. */
struct ring_use {
    int (*use)(struct event_ring *ring, void *context);
    void *context;
};
int owner_events_use(struct owner_events *events, const char *owner, const struct ring_use *use);

/* Makes the readers of all rings end after the last event. */
void owner_events_shut(struct owner_events *events);
