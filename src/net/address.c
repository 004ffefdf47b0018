// SPDX-License-Identifier: Apache-2.0
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"

struct special {
    const char *text;
    enum net_class class;
    const char *reason;
};

/* The first range that has an address decides, so narrow ones come first. */
static const struct special specials[] = {
    { "169.254.169.254", NET_HOST, "metadata service" },
    { "100.100.100.200", NET_HOST, "metadata service" },
    { "168.63.129.16", NET_HOST, "metadata service" },
    { "192.0.0.192", NET_HOST, "metadata service" },
    { "fd00:ec2::254", NET_HOST, "metadata service" },
    { "fd20:ce::254", NET_HOST, "metadata service" },
    { "fd00:42::42", NET_HOST, "metadata service" },
    { "0.0.0.0/8", NET_NEVER, "unspecified address" },
    { "127.0.0.0/8", NET_HOST, "loopback address" },
    { "169.254.0.0/16", NET_HOST, "link-local address" },
    { "10.0.0.0/8", NET_PRIVATE, "private address" },
    { "172.16.0.0/12", NET_PRIVATE, "private address" },
    { "192.168.0.0/16", NET_PRIVATE, "private address" },
    { "100.64.0.0/10", NET_PRIVATE, "private address" },
    { "192.0.0.0/24", NET_PRIVATE, "reserved address" },
    { "192.0.2.0/24", NET_PRIVATE, "reserved address" },
    { "192.88.99.0/24", NET_PRIVATE, "reserved address" },
    { "198.18.0.0/15", NET_PRIVATE, "reserved address" },
    { "198.51.100.0/24", NET_PRIVATE, "reserved address" },
    { "203.0.113.0/24", NET_PRIVATE, "reserved address" },
    { "224.0.0.0/4", NET_NEVER, "multicast address" },
    { "255.255.255.255", NET_NEVER, "broadcast address" },
    { "240.0.0.0/4", NET_PRIVATE, "reserved address" },
    { "::", NET_NEVER, "unspecified address" },
    { "::1", NET_HOST, "loopback address" },
    { "::/96", NET_HOST, "reserved address" },
    { "64:ff9b:1::/48", NET_HOST, "address of a local translator" },
    { "100::/64", NET_PRIVATE, "reserved address" },
    { "2001::/23", NET_PRIVATE, "reserved address" },
    { "2001:db8::/32", NET_PRIVATE, "reserved address" },
    { "3fff::/20", NET_PRIVATE, "reserved address" },
    { "5f00::/16", NET_PRIVATE, "reserved address" },
    { "fc00::/7", NET_PRIVATE, "private address" },
    { "fe80::/10", NET_HOST, "link-local address" },
    { "fec0::/10", NET_PRIVATE, "private address" },
    { "ff00::/8", NET_NEVER, "multicast address" },
};

static struct net_prefix special_prefixes[ARRAY_SIZE(specials) + 1];
static pthread_once_t specials_once = PTHREAD_ONCE_INIT;

static void specials_parse(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
        (void)net_prefix_parse(specials[i].text, &special_prefixes[i]);
}

const struct net_prefix *net_special_prefixes(void)
{
    (void)pthread_once(&specials_once, specials_parse);
    return special_prefixes;
}

static unsigned family_bits(int family)
{
    return family == AF_INET ? 32 : 128;
}

/* An IPv4 address inside ::ffff:0:0/96 becomes an IPv4 address. */
static struct net_address address_of_v6(const struct in6_addr *v6)
{
    struct net_address address = { .family = AF_INET6 };

    if (IN6_IS_ADDR_V4MAPPED(v6)) {
        address.family = AF_INET;
        memcpy(address.bytes, v6->s6_addr + 12, 4);
    } else {
        memcpy(address.bytes, v6->s6_addr, 16);
    }
    return address;
}

struct net_address net_address_of(const struct sockaddr *socket_address)
{
    struct net_address address = { .family = AF_UNSPEC };
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (socket_address->sa_family == AF_INET) {
        memcpy(&v4, socket_address, sizeof(v4));
        address.family = AF_INET;
        memcpy(address.bytes, &v4.sin_addr, 4);
    } else if (socket_address->sa_family == AF_INET6) {
        memcpy(&v6, socket_address, sizeof(v6));
        address = address_of_v6(&v6.sin6_addr);
    }
    return address;
}

int net_address_parse(const char *text, struct net_address *ret)
{
    struct net_address address = { .family = AF_INET };
    struct in6_addr v6;

    if (inet_pton(AF_INET, text, address.bytes) != 1) {
        if (inet_pton(AF_INET6, text, &v6) != 1)
            return -EINVAL;
        address = address_of_v6(&v6);
    }
    *ret = address;
    return 0;
}

bool net_address_equal(const struct net_address *one, const struct net_address *other)
{
    return one->family == other->family && memcmp(one->bytes, other->bytes, 16) == 0;
}

/* Clears the bits behind the prefix and returns whether one was set. */
static bool prefix_mask(struct net_prefix *prefix)
{
    bool had_bits = false;

    for (unsigned i = 0; i < family_bits(prefix->address.family) / 8; i++) {
        unsigned kept = prefix->bits > i * 8 ? prefix->bits - i * 8 : 0;
        unsigned char mask = kept >= 8 ? 0xff : (unsigned char)(0xff00 >> kept);

        had_bits = had_bits || (prefix->address.bytes[i] & ~mask) != 0;
        prefix->address.bytes[i] &= mask;
    }
    return had_bits;
}

/* Bits as a decimal number without sign or leading zeros. */
static int bits_parse(const char *text, unsigned max, unsigned *ret)
{
    uint64_t bits;

    if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] != '\0') ||
        parse_u64(text, &bits) < 0 || bits > max)
        return -EINVAL;
    *ret = (unsigned)bits;
    return 0;
}

int net_prefix_parse(const char *text, struct net_prefix *ret)
{
    struct net_prefix prefix = { 0 };
    char address[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "/");
    bool is_mapped;

    if (len >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, len);
    address[len] = '\0';
    if (net_address_parse(address, &prefix.address) < 0)
        return -EINVAL;
    is_mapped = prefix.address.family == AF_INET && strchr(address, ':');
    prefix.bits = family_bits(prefix.address.family);
    if (text[len] == '/') {
        if (bits_parse(text + len + 1, is_mapped ? 128 : prefix.bits, &prefix.bits) < 0)
            return -EINVAL;
        /* A shorter prefix would cover more than IPv4, which an address of one family cannot say.
         */
        if (is_mapped && prefix.bits < 96)
            return -EINVAL;
        prefix.bits -= is_mapped ? 96 : 0;
    }
    *ret = prefix;
    return prefix_mask(ret) ? -EDOM : 0;
}

void net_prefix_format(const struct net_prefix *prefix, char ret[NET_PREFIX_TEXT_SIZE])
{
    char address[INET6_ADDRSTRLEN] = "";

    (void)inet_ntop(prefix->address.family, prefix->address.bytes, address, sizeof(address));
    if (prefix->bits == family_bits(prefix->address.family))
        (void)snprintf(ret, NET_PREFIX_TEXT_SIZE, "%s", address);
    else
        (void)snprintf(ret, NET_PREFIX_TEXT_SIZE, "%s/%u", address, prefix->bits);
}

bool net_prefix_has(const struct net_prefix *prefix, const struct net_address *address)
{
    struct net_prefix cut = { .address = *address, .bits = prefix->bits };

    if (address->family != prefix->address.family || address->family == AF_UNSPEC)
        return false;
    (void)prefix_mask(&cut);
    return memcmp(cut.address.bytes, prefix->address.bytes, family_bits(address->family) / 8) == 0;
}

bool net_address_translated(const struct net_address *address, struct net_address *ret)
{
    static const unsigned char nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    size_t offset;

    if (address->family != AF_INET6)
        return false;
    if (memcmp(address->bytes, nat64, sizeof(nat64)) == 0)
        offset = 12;
    else if (address->bytes[0] == 0x20 && address->bytes[1] == 0x02)
        offset = 2;
    else
        return false;
    *ret = (struct net_address){ .family = AF_INET };
    memcpy(ret->bytes, address->bytes + offset, 4);
    return true;
}

/* The index of the special range that has the address, or -1. */
static int special_find(const struct net_address *address)
{
    const struct net_prefix *prefixes = net_special_prefixes();

    for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
        if (net_prefix_has(&prefixes[i], address))
            return (int)i;
    return -1;
}

unsigned net_address_special_bits(const struct net_address *address)
{
    struct net_address translated;
    int special = special_find(address);

    if (special >= 0)
        return special_prefixes[special].bits;
    if (!net_address_translated(address, &translated) || special_find(&translated) < 0)
        return family_bits(address->family);
    /* The bits in front of the IPv4 address inside. */
    return net_address_special_bits(&translated) + (address->bytes[0] == 0 ? 96U : 16U);
}

enum net_class net_address_class(const struct net_address *address, const char **ret_reason)
{
    struct net_address translated;
    int special;

    if (address->family == AF_UNSPEC) {
        *ret_reason = "not an address of the Internet protocol";
        return NET_NEVER;
    }
    special = special_find(address);
    if (special >= 0) {
        *ret_reason = specials[special].reason;
        return specials[special].class;
    }
    if (net_address_translated(address, &translated))
        return net_address_class(&translated, ret_reason);
    *ret_reason = "public address";
    return NET_PUBLIC;
}
