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

/* Connects, with a TLS handshake if tls is not NULL. Returns 0 or -1. */
int link_open(const struct address *address, struct tls *tls, int64_t deadline, struct link **ret,
              struct holt_error *error);

/* Makes a link from a connected socket, which it takes. */
struct link *link_new(int fd);

struct link *link_ref(struct link *link);
void link_unref(struct link *link);

/* Sends all the parts, whose array it modifies. Returns 0, -ETIMEDOUT or another -errno. */
int link_send(struct link *link, struct iovec *parts, size_t count, int64_t deadline);

/* Waits for bytes. Returns their number, 0 at the end of the connection, -ETIMEDOUT or another
 * -errno. */
ssize_t link_receive(struct link *link, void *data, size_t size, int64_t deadline);

/* Returns whether the connection is open and has nothing to read. */
bool link_is_quiet(struct link *link);

/* Returns the descriptor to poll before receiving; -1 if data is available already. */
int link_poll_fd(struct link *link);

/* Shuts the connection down for all holders of the link. */
void link_hang_up(struct link *link);
