/* Connections that left HTTP by an upgrade. Their threads serve them on their own; the listener
 * keeps the list, so that it can disconnect them when it stops. */
#pragma once

#include <stdbool.h>

#include "base/lock.h"

struct upgraded_connection {
    struct upgraded_connection *next;
    int fd;
};

struct upgraded_connections {
    struct lock lock; /* protects everything below */
    struct cond changed;
    struct upgraded_connection *first;
    bool is_stopping;
};

void upgraded_init(struct upgraded_connections *all);

/* Disconnects every client and waits until all threads have removed their connections. */
void upgraded_stop(struct upgraded_connections *all);

void upgraded_done(struct upgraded_connections *all);

/* Lists a connection, and disconnects it at once if the listener is stopping. */
void upgraded_add(struct upgraded_connections *all, struct upgraded_connection *connection);

void upgraded_remove(struct upgraded_connections *all,
                     const struct upgraded_connection *connection);
