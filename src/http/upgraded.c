// SPDX-License-Identifier: Apache-2.0
#include "http/upgraded.h"

#include <stddef.h>
#include <sys/socket.h>

void upgraded_init(struct upgraded_connections *all)
{
    *all = (struct upgraded_connections){ .first = NULL };
    lock_init(&all->lock, LOCK_UPGRADED);
    cond_init(&all->changed);
}

void upgraded_stop(struct upgraded_connections *all)
{
    lock_take(&all->lock);
    all->is_stopping = true;
    for (const struct upgraded_connection *each = all->first; each; each = each->next)
        (void)shutdown(each->fd, SHUT_RDWR);
    while (all->first)
        cond_wait(&all->changed, &all->lock);
    lock_release(&all->lock);
}

void upgraded_done(struct upgraded_connections *all)
{
    cond_destroy(&all->changed);
    lock_destroy(&all->lock);
}

void upgraded_add(struct upgraded_connections *all, struct upgraded_connection *connection)
{
    lock_take(&all->lock);
    connection->next = all->first;
    all->first = connection;
    if (all->is_stopping)
        (void)shutdown(connection->fd, SHUT_RDWR);
    lock_release(&all->lock);
}

void upgraded_remove(struct upgraded_connections *all, const struct upgraded_connection *connection)
{
    struct upgraded_connection **slot = &all->first;

    lock_take(&all->lock);
    while (*slot != connection)
        slot = &(*slot)->next;
    *slot = connection->next;
    cond_signal(&all->changed);
    lock_release(&all->lock);
}
