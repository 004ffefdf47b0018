/* Bytes both ways between two connected stream sockets, as long as either has something to say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct port_side {
    int fd;
    const char *early; /* bytes received before */
    size_t early_len;
    bool (*is_cut)(void *context); /* called at end of file: whether the connection was cut */
    void *context;                 /* NULL, both: it always is */

    /* Called before bytes are passed on: whether no more may be. NULL: they always may. */
    bool (*is_over)(void *context);
};

/* Copies both ways until both sides have sent end of file, or one fails. A side that does not read
 * stops the other; the end of one direction leaves the other open. Returns 0, or -errno if it did
 * not end in order. */
int port_pump(const struct port_side *client, const struct port_side *server);
