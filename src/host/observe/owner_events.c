// SPDX-License-Identifier: Apache-2.0
#include "host/observe/owner_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/observe/event_ring.h"

/* The rings of an owner, most recently used first. */
struct owner_ring {
    struct owner_ring *next;
    char owner[OWNER_NAME_MAX + 1];
    struct event_ring *ring;
};

struct owner_events {
    struct lock lock; /* protects all fields below */
    struct owner_ring *first;
    size_t count;
    bool is_shut;
};

struct owner_events *owner_events_new(void)
{
    struct owner_events *events = xcalloc(1, sizeof(*events));

    lock_init(&events->lock, LOCK_OWNER_EVENTS);
    return events;
}

static void owner_ring_free(struct owner_ring *owner)
{
    event_ring_close(owner->ring);
    free(owner);
}

void owner_events_free(struct owner_events *events)
{
    struct owner_ring *next;

    if (!events)
        return;
    for (struct owner_ring *each = events->first; each; each = next) {
        next = each->next;
        owner_ring_free(each);
    }
    lock_destroy(&events->lock);
    free(events);
}

/* Makes room for another ring. Locked. */
static void oldest_drop(struct owner_events *events)
{
    struct owner_ring **victim = NULL, *owner;

    for (struct owner_ring **slot = &events->first; *slot; slot = &(*slot)->next)
        if (!event_ring_has_readers((*slot)->ring))
            victim = slot;
    if (!victim)
        return;
    owner = *victim;
    *victim = owner->next;
    events->count--;
    owner_ring_free(owner);
}

/* Finds or makes the ring of an owner, and puts it first. Locked. */
static struct event_ring *ring_of(struct owner_events *events, const char *name)
{
    struct owner_ring **slot = &events->first, *owner;

    while (*slot && strcmp((*slot)->owner, name) != 0)
        slot = &(*slot)->next;
    owner = *slot;
    if (owner) {
        *slot = owner->next;
    } else {
        if (events->count >= OWNER_RINGS_MAX)
            oldest_drop(events);
        owner = xcalloc(1, sizeof(*owner));
        (void)snprintf(owner->owner, sizeof(owner->owner), "%s", name);
        owner->ring = event_ring_new();
        if (events->is_shut)
            event_ring_shut(owner->ring);
        events->count++;
    }
    owner->next = events->first;
    events->first = owner;
    return owner->ring;
}

void owner_events_publish(struct owner_events *events, struct event_ring *all,
                          const struct event_content *content)
{
    struct event *event;

    lock_scope(&events->lock);
    event = event_new(content); /* takes the time, so under the lock */
    event_ring_add(all, event);
    event_ring_add(ring_of(events, *event->owner ? event->owner : OWNER_ROOT), event);
    event_unref(event);
}

int owner_events_use(struct owner_events *events, const char *owner, const struct ring_use *use)
{
    lock_scope(&events->lock);
    return use->use(ring_of(events, owner), use->context);
}

void owner_events_shut(struct owner_events *events)
{
    lock_scope(&events->lock);
    events->is_shut = true;
    for (struct owner_ring *each = events->first; each; each = each->next)
        event_ring_shut(each->ring);
}
