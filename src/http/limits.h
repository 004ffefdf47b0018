/* How long clients may take. libmicrohttpd's own idle time starts again with every byte, so a
 * client that sends one now and then would stay for ever; here a connection has a moment at which
 * it is cut, and whoever serves it moves that moment on when the client has got somewhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct guard;
struct guarded;

enum {
    GUARD_FIRST_MS = 10 * 1000, /* from the connection to the end of its first header */
    GUARD_IDLE_MS = 120 * 1000, /* from an answer to the end of the next header, and for reading
                                   an answer */
    GUARD_KEPT_MS = 640 * 1000, /* the same of E2B's clients, which send no request again that met
                                   the end of a connection */
    GUARD_BODY_MS = 10 * 1000,  /* for the body, and a second more for each of these bytes */
    GUARD_BYTES_PER_S = 16 * 1024,
    GUARD_LATE_MS = 30 * 1000, /* that a stream whose time is over may take for its last words */
};

#define GUARD_FOREVER UINT64_MAX

/* Starts the thread that looks at all connections of a listener. Where there are more than crowd, a
 * new one pushes out one that nobody serves, so that the silent keep nobody out; and where there
 * are more than share of one address (0: any number), one of that address. */
int guard_start(size_t crowd, size_t share, struct guard **ret, struct err *err);

/* Every connection looks as if its client had hung up, but can still be written to. */
void guard_drain(struct guard *guard);

/* Waits until there is no connection any more, or until this moment of guard_clock_ns. */
void guard_await_empty(struct guard *guard, uint64_t until_ns);

/* All connections must be gone. Accepts NULL. */
void guard_stop(struct guard *guard);

/* A new connection, which has GUARD_FIRST_MS. */
struct guarded *guard_add(struct guard *guard, int fd);

/* To be called before the socket is closed. Accepts NULL. */
void guard_remove(struct guard *guard, struct guarded *guarded);

/* How many connections there are now, of all listeners. */
unsigned guard_count(void);

/* The connection is cut in this many milliseconds, or never. */
void guarded_allow(struct guarded *guarded, uint64_t ms);

/* Bytes have come, or must be gone: so much later. */
void guarded_extend(struct guarded *guarded, uint64_t bytes);

/* From this moment on (of guard_clock_ns; GUARD_FOREVER: never) the call is late: the connection
 * looks as if the client had hung up, so that whoever waits with an eye on it stops, but can still
 * be written to. A stream's is cut a little later, since nobody else sees that its client does not
 * read. */
void guarded_set_deadline(struct guarded *guarded, uint64_t deadline_ns, bool is_stream);

/* Monotonic. */
uint64_t guard_clock_ns(void);
