// SPDX-License-Identifier: Apache-2.0
#include "net/target.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"

#define SOME_PUBLIC_ADDRESS "1.1.1.1"

static const struct {
    const char *name;
    enum net_protocol protocol;
    uint16_t port;
} target_schemes[] = {
    { "https", NET_TLS, 443 },
    { "http", NET_HTTP, 80 },
    { "ssh", NET_TCP, 22 },
    { "tcp", NET_TCP, 0 },
};

static int scheme_take(const char **text, struct net_request *request, struct err *err)
{
    const char *end = strstr(*text, "://");

    request->protocol = NET_UNKNOWN;
    request->port = 443;
    if (!end)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(target_schemes); i++) {
        size_t len = strlen(target_schemes[i].name);

        if ((size_t)(end - *text) == len && strncasecmp(*text, target_schemes[i].name, len) == 0) {
            request->protocol = target_schemes[i].protocol;
            request->port = target_schemes[i].port;
            *text = end + 3;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "'%.100s': the scheme must be http, https, ssh or tcp", *text);
}

static int host_take(const char **text, struct net_target *target, struct err *err)
{
    bool has_brackets = **text == '[';
    const char *host = *text + has_brackets;
    size_t len = strcspn(host, has_brackets ? "]" : ":/");
    char copy[NET_NAME_SIZE + 2];
    const char *reason;

    if (!has_brackets && host[len] == ':' && strchr(host + len + 1, ':'))
        len = strlen(host);
    if (len >= sizeof(copy) || (has_brackets && host[len] != ']'))
        return err_set(err, ERR_INVALID, "'%.100s' has no host", *text);
    memcpy(copy, host, len);
    copy[len] = '\0';
    *text = host + len + has_brackets;
    if (net_address_parse(copy, &target->request.address) == 0)
        return 0;
    reason = net_name_normalize(copy, len, target->name);
    return reason ? err_set(err, ERR_INVALID, "'%.100s': %s", copy, reason) : 0;
}

static int port_take(const char **text, struct net_request *request, struct err *err)
{
    size_t len = strcspn(*text, "/");
    uint64_t port = request->port;
    char copy[8];

    if (**text == ':') {
        if (len - 1 >= sizeof(copy))
            return err_set(err, ERR_INVALID, "'%.20s' is not a port", *text + 1);
        memcpy(copy, *text + 1, len - 1);
        copy[len - 1] = '\0';
        *text += len;
        if (parse_u64(copy, &port) < 0)
            port = 0;
    } else if (len > 0) {
        return err_set(err, ERR_INVALID, "'%.100s' does not follow a host", *text);
    }
    if (port == 0 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "a port from 1 to 65535 is needed");
    request->port = (uint16_t)port;
    return 0;
}

int net_target_parse(const char *text, const char *address, struct net_target *ret, struct err *err)
{
    int r;

    *ret = (struct net_target){ .request.address.family = AF_UNSPEC };
    if (strlen(text) > NET_TARGET_MAX)
        return err_set(err, ERR_INVALID, "the target is longer than %d bytes", NET_TARGET_MAX);
    r = scheme_take(&text, &ret->request, err);
    if (r == 0)
        r = host_take(&text, ret, err);
    if (r == 0)
        r = port_take(&text, &ret->request, err);
    if (r < 0)
        return r;
    (void)snprintf(ret->path, sizeof(ret->path), "%s", *text ? text : "/");
    if (ret->request.protocol == NET_HTTP)
        ret->request.path = ret->path;
    if (ret->name[0])
        ret->request.name = ret->name;
    if (ret->name[0] &&
        net_address_parse(*address ? address : SOME_PUBLIC_ADDRESS, &ret->request.address) < 0)
        return err_set(err, ERR_INVALID, "'%.60s' is not an address", address);
    return 0;
}

void net_target_decide(const struct net_policy *policy, const struct net_target *target,
                       struct net_verdict *ret)
{
    struct net_request request = target->request;

    if (target->name[0] && !net_policy_allows_name(policy, target->name, ret))
        return;
    request.name = target->name[0] ? target->name : NULL;
    if (request.path)
        request.path = target->path;
    net_policy_decide(policy, &request, ret);
}
