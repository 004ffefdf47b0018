// SPDX-License-Identifier: Apache-2.0
#include "http/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 256 };

/* Without port and brackets; false when it is no name at all. */
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

/* Whole words of a list with commas and blanks. */
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

bool door_knows_host(const struct door *door, const char *host)
{
    char name[NAME_MAX_BYTES], own[NAME_MAX_BYTES];

    if (door->is_local || !host)
        return true;
    if (!name_of(host, name))
        return false;
    return is_address(name) || strcasecmp(name, "localhost") == 0 ||
           (name_of(door->listen, own) && strcasecmp(name, own) == 0) ||
           is_listed(door->hosts, name);
}

bool door_knows_origin(const struct door *door, const char *origin)
{
    return !origin || is_listed(door->origins, origin);
}
