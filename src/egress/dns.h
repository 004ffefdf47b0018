/* DNS messages: queries of sandboxes, and replies of name servers, which are read completely and
 * written anew, so that nothing reaches a sandbox that was not understood. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

struct buf;

enum {
    DNS_MESSAGE_MAX = 65535,
    DNS_UDP_MAX = 4096, /* of a datagram, either way */
    DNS_WIRE_NAME_MAX = 255,
    DNS_TEXT_NAME_MAX = 255,
    DNS_RECORDS_MAX = 96, /* of one reply that are passed on */
};

enum dns_type {
    DNS_A = 1,
    DNS_CNAME = 5,
    DNS_PTR = 12,
    DNS_MX = 15,
    DNS_TXT = 16,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_SVCB = 64,
    DNS_HTTPS = 65,
};

enum dns_code { DNS_OK = 0, DNS_FORMAT = 1, DNS_FAILED = 2, DNS_NO_NAME = 3 };

/* Codes of RFC 8914. */
enum dns_extended {
    DNS_NO_REASON = -1,
    DNS_BLOCKED = 15,
    DNS_UNREACHABLE = 22,
};

struct dns_query {
    uint16_t id;
    uint16_t type;
    bool wants_recursion;
    bool has_options;                /* EDNS: extended errors can be sent */
    uint16_t udp_max;                /* largest datagram that the client takes */
    uint8_t wire[DNS_WIRE_NAME_MAX]; /* the name as it was sent */
    size_t wire_len;
    char name[DNS_TEXT_NAME_MAX + 1]; /* in lower case, without a trailing dot */
};

/* Reads a query. Returns 0, -EBADMSG for bytes that deserve no answer, or -EINVAL for a query with
 * a name or a class that is refused: ret then has what a reply needs. */
int dns_query_parse(const void *data, size_t len, struct dns_query *ret);

/* Returns whether queries of this type are sent to name servers. */
bool dns_type_is_known(uint16_t type);

/* Writes the query for a name server, with its own id and the name in lower case. */
int dns_query_write(const struct dns_query *query, uint16_t id, struct buf *out);

struct dns_record {
    uint16_t type;
    uint32_t ttl;
    uint8_t owner[DNS_WIRE_NAME_MAX];
    size_t owner_len;
    struct net_address address; /* of A and AAAA */
    uint8_t *data;              /* of the others, with names in full */
    size_t data_len;
};

struct dns_reply {
    enum dns_code code;
    bool is_cut; /* the server had more; there are no records */
    struct dns_record *records;
    size_t count;
};

/* Reads the reply of a name server to a query that was sent with this id. Returns 0 or -EBADMSG;
 * the caller calls dns_reply_done after both. */
int dns_reply_parse(const void *data, size_t len, const struct dns_query *query, uint16_t id,
                    struct dns_reply *ret);
void dns_reply_done(struct dns_reply *reply);

/* Removes one record. */
void dns_reply_remove(struct dns_reply *reply, size_t index);

/* Writes the reply for the client, with a reason if it can take one. `max` is the largest size;
 * what does not fit is left out and the reply marked as cut. */
struct dns_reason {
    enum dns_extended code;
    const char *text;
};
int dns_reply_write(const struct dns_query *query, const struct dns_reply *reply,
                    const struct dns_reason *reason, size_t max, struct buf *out);
