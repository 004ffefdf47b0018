/* What a person asks about, as a request: "https://example.com", "10.0.0.1:5432". */
#pragma once

#include "net/policy.h"

enum { NET_TARGET_MAX = 1024 };

struct net_target {
    struct net_request request;
    char name[NET_NAME_SIZE]; /* "": an address */
    char path[NET_TARGET_MAX + 1];
};

/* Parses a target. `address` ("": a public one) is what its name is taken to resolve to. Fails with
 * ERR_INVALID. The request refers to the target. */
int net_target_parse(const char *text, const char *address, struct net_target *ret,
                     struct err *err);

/* Decides as for a program that resolves the name of the target and connects. */
void net_target_decide(const struct net_policy *policy, const struct net_target *target,
                       struct net_verdict *ret);
