/* Bytes both ways between two connected stream sockets, as long as either has something to say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct port_side {
    int fd;
    const char *early; /* what was received from it already */
    size_t early_len;
    bool (*is_cut)(void *context); /* asked at its end of file: whether that is none of its own */
    void *context;                 /* NULL, both: it always is */
};

/* Returns when both sides have said their end of file, or one is broken or goes away. A side that
 * does not read holds back the one that writes; the end of one direction is passed on and leaves
 * the other open. 0, or -errno: then it was no orderly end. */
int port_pump(const struct port_side *client, const struct port_side *server);
