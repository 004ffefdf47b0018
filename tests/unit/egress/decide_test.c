// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/err.h"
#include "check.h"
#include "egress/egress_internal.h"

static struct egress egress = { .now_ms = 1000 };
static struct guest guest = { .egress = &egress, .mode = NET_ALLOW };

static bool decide(const char *address, const struct asked *asked)
{
    struct net_address parsed;
    struct net_verdict verdict;

    CHECK(net_address_parse(address, &parsed) == 0);
    return guest_decide(&guest, &parsed, 443, asked, &verdict);
}

/* The name stays valid for the connection that was decided for it, and for no other. */
static void a_granted_name_outlives_its_grant(void)
{
    struct asked fresh = { .name = "a.test", .protocol = NET_TLS };
    struct asked kept = { .name = "A.test", .protocol = NET_TLS, .granted_name = "a.test" };
    struct asked other = { .name = "b.test", .protocol = NET_TLS, .granted_name = "a.test" };
    struct net_address address;
    struct err err = { 0 };

    guest.policy.count = 1;
    guest.policy.layers[0] = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    CHECK(net_layer_allow(&guest.policy.layers[0], "a.test", &err) == 0);
    CHECK(net_address_parse("93.184.216.34", &address) == 0);
    CHECK(!decide("93.184.216.34", &fresh));
    CHECK(grant_add(&guest, &address, "a.test", 1));
    CHECK(decide("93.184.216.34", &fresh) && decide("93.184.216.34", &kept));
    egress.now_ms += 3600 * 1000;
    CHECK(!decide("93.184.216.34", &fresh));
    CHECK(decide("93.184.216.34", &kept));
    CHECK(!decide("93.184.216.34", &other));
    CHECK(net_layer_remove(&guest.policy.layers[0], "a.test"));
    CHECK(!decide("93.184.216.34", &kept)); /* the policy counts all the same */
    grants_free(&guest);
    net_policy_done(&guest.policy);
}

int main(void)
{
    RUN(a_granted_name_outlives_its_grant);
    return 0;
}
