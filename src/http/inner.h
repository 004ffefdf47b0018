/* Inner connections: calls that the daemon makes to its own server for a client that it already
 * knows, such as the channels of a multiplexed stream. They are ordinary connections of the same
 * server, so that methods, limits, metrics and the audit log work as for any other call. */
#pragma once

#include <microhttpd.h>

#include "base/access/caller.h"

struct err;
struct exchange;
struct sockaddr;

/* Connects to the server of the exchange on behalf of the caller, which needs no token there. The
 * descriptor does not block; inner_close closes it. The connection counts as one of the client of
 * the exchange. Half of all connections may be inner ones, and each owner but root may have half of
 * those. */
int inner_connect(const struct exchange *exchange, const struct caller *caller, int *ret_fd,
                  struct err *err);

/* Closes a connection that inner_connect made for the caller. A negative fd is none. */
void inner_close(int fd, const struct caller *caller);

/* Returns the caller of an inner connection, which lives as long as it; NULL for one of a client.
 */
const struct caller *inner_caller(struct MHD_Connection *connection);

/* Returns the address of the client, also of an inner connection; NULL: unknown. */
const struct sockaddr *inner_client_address(struct MHD_Connection *connection);
