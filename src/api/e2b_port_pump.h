/* Bytes both ways between two connected stream sockets, as long as either has something to say. */
#pragma once

#include <stddef.h>

/* What was received already and belongs to the other side. */
struct port_early {
    const char *data;
    size_t len;
};

/* Returns when both sides have said their end of file, or one is broken or goes away. A side that
 * does not read holds back the one that writes; the end of one direction is passed on and leaves
 * the other open. early is from the client for the server. 0, or -errno: then it was no orderly
 * end. */
int port_pump(int client_fd, int server_fd, const struct port_early *early);
