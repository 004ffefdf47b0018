/* What the two kinds of raw sessions share: a stream's, and an upload's. */
#pragma once

#include <stddef.h>

struct buf;
struct err;

/* Waits for the socket, which comes from libmicrohttpd and does not block. */
int raw_wait(int fd, short events, int timeout_ms);

int raw_send_all(int fd, const char *data, size_t len);

/* Appends the end of all; err NULL: a good one. */
int raw_end_add(struct buf *out, const struct err *err);

/* What the client has not read yet must not be lost. */
void raw_hang_up(int fd);
