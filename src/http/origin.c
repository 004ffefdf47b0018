// SPDX-License-Identifier: Apache-2.0
#include "http/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 256 };

/* Copies the host without port and brackets; false if it is malformed. */
static bool name_of(const char *text, char ret[NAME_MAX_BYTES])
{
    const char *end;
    size_t len;

    if (*text == '[') {
        text++;
        end = strchr(text, ']');
    } else {
        end = text + strcspn(text, ":");
    }
    if (!end)
        return false;
    len = (size_t)(end - text);
    if (len == 0 || len >= NAME_MAX_BYTES)
        return false;
    (void)snprintf(ret, NAME_MAX_BYTES, "%.*s", (int)len, text);
    return true;
}

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Whether a word is in a list separated by commas and blanks. */
static bool is_listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*(list += strspn(list, ", "))) {
        size_t each = strcspn(list, ", ");

        if (each == len && strncasecmp(list, word, len) == 0)
            return true;
        list += each;
    }
    return false;
}

bool origin_rules_allow_host(const struct origin_rules *origin_rules, const char *host)
{
    char name[NAME_MAX_BYTES], own[NAME_MAX_BYTES];

    if (origin_rules->is_local || !host)
        return true;
    if (!name_of(host, name))
        return false;
    return is_address(name) || strcasecmp(name, "localhost") == 0 ||
           (name_of(origin_rules->listen, own) && strcasecmp(name, own) == 0) ||
           is_listed(origin_rules->hosts, name);
}

void origin_rules_name(const struct origin_rules *origin_rules, char *ret, size_t size)
{
    const char *first = origin_rules->hosts + strspn(origin_rules->hosts, ", ");
    char own[NAME_MAX_BYTES];

    if (*first)
        (void)snprintf(ret, size, "%.*s", (int)strcspn(first, ", "), first);
    else if (name_of(origin_rules->listen, own) && !is_address(own))
        (void)snprintf(ret, size, "%s", own);
    else
        (void)snprintf(ret, size, "localhost");
}

bool origin_rules_allow_origin(const struct origin_rules *origin_rules, const char *origin)
{
    return !origin || is_listed(origin_rules->origins, origin);
}

bool origin_is_same(const char *origin, const char *host, bool is_tls)
{
    const char *scheme = is_tls ? "https://" : "http://";

    return origin && host && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcasecmp(origin + strlen(scheme), host) == 0;
}
