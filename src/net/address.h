/* Addresses and ranges of both families, and the ranges that need more than a name to be reached.
 * An IPv4 address has one form here, whatever way it was written: ::ffff:0:0/96 is unwrapped. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct net_address {
    int family; /* AF_INET, AF_INET6; AF_UNSPEC: none */
    unsigned char bytes[16];
};

struct net_prefix {
    struct net_address address; /* bits behind the prefix are zero */
    unsigned bits;
};

/* What must be said for an address to be reachable. */
enum net_class {
    NET_PUBLIC,  /* mode open, or a rule for a name or a range */
    NET_PRIVATE, /* a rule for a range in every layer */
    NET_HOST,    /* the same, and one of the layers is holt.conf: loopback, link-local, metadata */
    NET_NEVER,   /* no rule: multicast, broadcast, unspecified */
};

enum { NET_PREFIX_TEXT_SIZE = INET6_ADDRSTRLEN + 4 };

/* Takes the address of an AF_INET or AF_INET6 socket address; AF_UNSPEC for another family. */
struct net_address net_address_of(const struct sockaddr *socket_address);

/* Parses an address in its usual form: four decimal numbers without leading zeros, or IPv6 without
 * a zone. Returns 0 or -EINVAL. */
int net_address_parse(const char *text, struct net_address *ret);

/* Returns whether both are the same address. */
bool net_address_equal(const struct net_address *one, const struct net_address *other);

/* Parses "10.0.0.0/8", "2001:db8::/32" or a single address. Returns 0, -EINVAL, or -EDOM if bits
 * behind the prefix are set; ret then has them cleared. */
int net_prefix_parse(const char *text, struct net_prefix *ret);

/* Writes a prefix as net_prefix_parse reads it; one that covers a single address as that address.
 */
void net_prefix_format(const struct net_prefix *prefix, char ret[NET_PREFIX_TEXT_SIZE]);

bool net_prefix_has(const struct net_prefix *prefix, const struct net_address *address);

/* Returns the IPv4 address that a translator would reach for an IPv6 one (NAT64, 6to4); false if
 * there is none. */
bool net_address_translated(const struct net_address *address, struct net_address *ret);

/* Returns the class of an address and, in ret_reason, the words for it ("link-local address", ...).
 * An address that a translator turns into another one has the stricter class of the two. */
enum net_class net_address_class(const struct net_address *address, const char **ret_reason);

/* Returns the bits of the special range that has the address: a rule that allows the address needs
 * as many. For an address that is in none, all bits. */
unsigned net_address_special_bits(const struct net_address *address);

/* The ranges that are not public, for routes: ends with one whose family is AF_UNSPEC. */
const struct net_prefix *net_special_prefixes(void);
