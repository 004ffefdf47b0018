// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"

#define EVERYTHING "0.0.0.0/0"

enum { RULES_MAX = 1000 };

/* "10.0.0.1" or "10.0.0.0/8", of either family. */
static bool is_range(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char address[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "/");
    uint64_t bits = 0;
    bool is_v4;

    if (len >= sizeof(address))
        return false;
    (void)snprintf(address, sizeof(address), "%.*s", (int)len, text);
    is_v4 = inet_pton(AF_INET, address, bytes) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, bytes) != 1)
        return false;
    return text[len] == '\0' ||
           (parse_u64(text + len + 1, &bits) == 0 && bits <= (is_v4 ? 32U : 128U));
}

static bool has_everything(const json_t *list)
{
    size_t index;
    json_t *value;

    json_array_foreach((json_t *)(uintptr_t)list, index, value) {
        if (strcmp(json_string_value(value), EVERYTHING) == 0)
            return true;
    }
    return false;
}

/* A list of texts, each a range or, where that is allowed, a name. */
static int list_check(const json_t *list, const char *field, bool may_name, struct err *err)
{
    size_t index;
    json_t *value;

    if (json_array_size(list) > RULES_MAX)
        return err_set(err, ERR_INVALID, "network.%s has more than %d entries", field, RULES_MAX);
    json_array_foreach((json_t *)(uintptr_t)list, index, value) {
        const char *text = json_string_value(value);

        if (!text)
            return err_set(err, ERR_INVALID, "network.%s must be a list of texts", field);
        if (is_range(text))
            continue;
        if (strcmp(field, "denyOut") == 0)
            return err_set(err, ERR_INVALID, "invalid denied CIDR %.100s", text);
        if (!may_name)
            return err_set(err, ERR_INVALID,
                           "when specifying allowed domains in allow out, you must include "
                           "'" EVERYTHING "' in deny out to block all other traffic");
    }
    return 0;
}

int e2b_network_check(const json_t *network, struct err *err)
{
    const json_t *allow = NULL, *deny = NULL, *ignored = NULL;
    const char *mask = NULL;
    bool is_public;
    int r = json_get_array(network, "denyOut", &deny, err);

    if (r == 0)
        r = json_get_array(network, "allowOut", &allow, err);
    if (r == 0)
        r = json_get_bool(network, "allowPublicTraffic", &is_public, err);
    if (r == 0)
        r = json_get_text(network, "maskRequestHost", &mask, err);
    if (r == 0)
        r = json_get_object(network, "rules", &ignored, err);
    if (r == 0)
        r = list_check(deny, "denyOut", false, err);
    return r == 0 ? list_check(allow, "allowOut", has_everything(deny), err) : r;
}

json_t *e2b_network_copy(const json_t *network)
{
    json_t *copy = network ? json_deep_copy(network) : json_object();

    (void)json_object_del(json_object_get(copy, "egressProxy"), "password");
    return copy;
}
