/* The request loop of a tool worker. */
#pragma once

/* Sends HELLO, then serves requests until the daemon closes the socket. Returns 0, or -errno after
 * a malformed request or without memory. */
int tools_serve(int fd);
