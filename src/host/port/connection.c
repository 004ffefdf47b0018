// SPDX-License-Identifier: Apache-2.0
/* Frames from the guest about connections. All of them are validated: a guest may be hostile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"
#include "wire/message.h"

enum { ERRNO_MAX = 4095 };

struct port_connection *port_connection_new(int fd, uint16_t port, struct port_forward *forward)
{
    struct port_connection *connection = xcalloc(1, sizeof(*connection));

    connection->source = (struct port_source){ .kind = PORT_CLIENT, .fd = fd };
    connection->port = port;
    connection->forward = forward;
    return connection;
}

void port_connection_free(struct port_connection *connection)
{
    (void)fd_close(connection->source.fd);
    machine_unref(connection->machine);
    buf_done(&connection->pending);
    free(connection->data);
    free(connection);
}

/* The caller holds the lock. */
static void connection_make_ready(struct port_connection *connection)
{
    struct ports *ports = connection->ports;

    if (!connection->is_ready) {
        connection->is_ready = true;
        connection->next_ready = ports->ready;
        ports->ready = connection;
    }
    port_wake(ports);
}

/* Returns the next number whose slot is free (there must be one). It is never 0, and a number is
 * not reused soon. The caller holds the lock. */
static uint32_t table_choose_number(struct port_table *table)
{
    do {
        table->sequence++;
    } while (table->sequence == 0 || table->slots[table->sequence % FRAME_CONNECTIONS_MAX]);
    return table->sequence;
}

int port_connection_add(struct machine *machine, struct port_connection *connection)
{
    struct port_table *table = &machine->ports;
    struct ports *ports = machine->host->ports;
    int r = 0;

    lock_take(&ports->lock);
    if (!table->slots)
        table->slots = xcalloc(FRAME_CONNECTIONS_MAX, sizeof(struct port_connection *));
    if (table->is_cut || ports->is_stopping)
        r = -EPIPE;
    else if (table->used == FRAME_CONNECTIONS_MAX)
        r = -EAGAIN;
    if (r == 0) {
        connection->ports = ports;
        connection->machine = machine_ref(machine);
        connection->number = table_choose_number(table);
        table->slots[connection->number % FRAME_CONNECTIONS_MAX] = connection;
        table->used++;
        if (connection->forward)
            connection->forward->connections++;
        connection_make_ready(connection);
    }
    lock_release(&ports->lock);
    return r;
}

bool port_connection_remove(struct port_connection *connection)
{
    struct port_table *table = &connection->machine->ports;
    bool is_last;

    lock_take(&connection->ports->lock);
    table->slots[connection->number % FRAME_CONNECTIONS_MAX] = NULL;
    table->used--;
    is_last = table->used == 0;
    lock_release(&connection->ports->lock);
    return is_last;
}

/* The caller of each handler holds the lock. A connection that was given up may still receive a
 * reply and as much data as its window allows; that is discarded. */
static bool on_connected(struct port_connection *connection, const struct frame *frame)
{
    if (connection->is_connected || frame->size != 0)
        return false;
    connection->is_connected = true;
    return true;
}

static void ring_append(struct port_connection *connection, const char *data, size_t len)
{
    size_t start = connection->received % FRAME_CONN_WINDOW;
    size_t first = len < FRAME_CONN_WINDOW - start ? len : FRAME_CONN_WINDOW - start;

    if (!connection->data)
        connection->data = xcalloc(1, FRAME_CONN_WINDOW);
    memcpy(connection->data + start, data, first);
    memcpy(connection->data, data + first, len - first);
}

static bool on_data(struct port_connection *connection, const struct frame *frame)
{
    uint64_t offset;
    const char *data;
    size_t len;

    if (!message_get_input(frame, &offset, &data, &len) || !connection->is_connected ||
        connection->is_eof || offset != connection->received || len == 0 ||
        len > FRAME_CONN_WINDOW - (connection->received - connection->acked))
        return false;
    if (!connection->is_end_sent)
        ring_append(connection, data, len);
    connection->received += len;
    return true;
}

static bool on_eof(struct port_connection *connection, const struct frame *frame)
{
    uint64_t offset, none;

    if (!message_get_numbers(frame, &offset, &none) || !connection->is_connected ||
        connection->is_eof || offset != connection->received)
        return false;
    connection->is_eof = true;
    return true;
}

static bool on_ack(struct port_connection *connection, const struct frame *frame)
{
    uint64_t offset, none;

    if (!message_get_numbers(frame, &offset, &none) || offset <= connection->taken ||
        offset > connection->sent)
        return false;
    connection->taken = offset;
    return true;
}

/* An end without an error is valid only after both directions are closed, or after we have ended
 * the connection. */
static bool on_end(struct port_connection *connection, const struct frame *frame)
{
    uint64_t errnum, none;

    if (!message_get_numbers(frame, &errnum, &none) || errnum > ERRNO_MAX)
        return false;
    if (errnum == 0 && !connection->is_end_sent && !(connection->is_eof && connection->is_eof_sent))
        return false;
    connection->is_ended = true;
    connection->errnum = (int)errnum;
    return true;
}

static bool (*const frame_handlers[FRAME_TYPES])(struct port_connection *connection,
                                                 const struct frame *frame) = {
    [FRAME_CONNECTED] = on_connected, [FRAME_CONN_DATA] = on_data, [FRAME_CONN_EOF] = on_eof,
    [FRAME_CONN_ACK] = on_ack,        [FRAME_CONN_END] = on_end,
};

bool port_frame(struct machine *machine, const struct frame *frame)
{
    struct port_table *table = &machine->ports;
    struct ports *ports = machine->host->ports;
    struct port_connection *connection = NULL;
    bool is_ok = false;

    lock_take(&ports->lock);
    if (table->slots)
        connection = table->slots[frame->process % FRAME_CONNECTIONS_MAX];
    if (connection && connection->number == frame->process && !connection->is_ended &&
        frame_handlers[frame->type])
        is_ok = frame_handlers[frame->type](connection, frame);
    if (is_ok)
        connection_make_ready(connection);
    lock_release(&ports->lock);
    return is_ok;
}

void port_cut(struct machine *machine)
{
    struct port_table *table = &machine->ports;
    struct ports *ports = machine->host->ports;

    lock_take(&ports->lock);
    table->is_cut = true;
    for (unsigned i = 0; table->slots && i < FRAME_CONNECTIONS_MAX; i++)
        if (table->slots[i])
            connection_make_ready(table->slots[i]);
    ports->has_changed = true;
    port_wake(ports);
    lock_release(&ports->lock);
}

void port_table_done(struct port_table *table)
{
    free(table->slots);
}
