/* One connection to a daemon: a socket, with TLS for https. One thread may send while another
 * receives. Reference counted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct address;
struct holt_error;
struct link;
struct tls;

/* Connects, and shakes hands where tls is not NULL: 0 or -1. */
int link_open(const struct address *address, struct tls *tls, int64_t deadline, struct link **ret,
              struct holt_error *error);

/* A link over a socket that is connected already, which it takes. */
struct link *link_new(int fd);

struct link *link_ref(struct link *link);
void link_unref(struct link *link);

/* Sends all the parts, which are changed: 0, -ETIMEDOUT or another -errno. */
int link_send(struct link *link, struct iovec *parts, size_t count, int64_t deadline);

/* Waits for bytes: how many, 0 at the end of the connection, -ETIMEDOUT or another -errno. */
ssize_t link_receive(struct link *link, void *data, size_t size, int64_t deadline);

/* Whether the other side has neither sent anything nor hung up. */
bool link_is_quiet(struct link *link);

/* The descriptor to poll before receiving; -1 when there is something to receive already. */
int link_poll_fd(struct link *link);

/* Shuts the connection down for all holders of the link. */
void link_hang_up(struct link *link);
