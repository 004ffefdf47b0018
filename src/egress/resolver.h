/* What the files of the resolver share. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "egress/dns.h"

struct connection;
struct guest;
struct net_address;

/* Where a query came from. */
struct asker {
    struct guest *guest;
    struct connection *connection; /* NULL: a datagram */
    struct sockaddr_storage address;
    socklen_t address_len;
};

/* --- resolver.c --- */

/* Answers a message of the sandbox: at once, or when a name server has. */
void asker_handle(const struct asker *asker, const void *data, size_t len);
void asker_answer(const struct asker *asker, const struct dns_query *question,
                  const struct dns_reply *reply, const struct dns_reason *reason);
void asker_refuse(const struct asker *asker, const struct dns_query *question, enum dns_code code,
                  enum dns_extended extended, const char *text);

/* Logs a name, or an address (NULL: none) of it, that the sandbox does not get. */
void refusal_report(struct guest *guest, const char *name, const char *rule,
                    const struct net_address *address);

/* --- resolver_tcp.c --- */

/* Sends an answer. The connection may have ended afterwards. */
void resolver_tcp_send(struct connection *connection, const struct buf *message);

/* Sends and handles until neither makes room for more of the other. A query that is answered at
 * once comes back here while its message is still in the buffer. */
void resolver_tcp_advance(struct connection *connection);

/* --- resolver_query.c --- */

/* Asks the name servers of the host. */
void query_start(const struct asker *asker, const struct dns_query *question);
