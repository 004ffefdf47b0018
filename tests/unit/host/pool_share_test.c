// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "host/machine/pool_share.h"

enum { SIZE = 8, REST = 2 };

static void one_owner_has_the_whole_pool(void)
{
    struct pool_share share = { .next = 0 };

    for (uint64_t i = 0; i < 100; i++)
        CHECK(pool_share_ask(&share, "ann", 1000 + i, SIZE) == 0);
}

static void a_busy_owner_leaves_some_to_others(void)
{
    struct pool_share share = { .next = 0 };
    uint32_t rest = 0;

    CHECK(pool_share_ask(&share, "bob", 1000, SIZE) == 0);
    for (uint64_t i = 0; i < 5; i++)
        rest = pool_share_ask(&share, "ann", 1001 + i, SIZE);
    CHECK(rest == REST);
    CHECK(pool_share_ask(&share, "bob", 1010, SIZE) == 0, "(it asks for few)");
    CHECK(pool_share_ask(&share, "ann", 1011, 1) == 0, "(one machine is for the first)");
}

static void an_owner_that_is_gone_has_no_share(void)
{
    struct pool_share share = { .next = 0 };
    uint64_t later = 1000 + POOL_REQUEST_MS + 1;

    CHECK(pool_share_ask(&share, "bob", 1000, SIZE) == 0);
    for (uint64_t i = 0; i < 5; i++)
        CHECK(pool_share_ask(&share, "ann", later + i, SIZE) == 0);
}

static void equals_have_equal_shares(void)
{
    struct pool_share share = { .next = 0 };

    for (uint64_t i = 0; i < 100; i++) {
        CHECK(pool_share_ask(&share, "ann", 1000 + i, SIZE) == 0);
        CHECK(pool_share_ask(&share, "bob", 1000 + i, SIZE) == 0);
    }
}

int main(void)
{
    RUN(one_owner_has_the_whole_pool);
    RUN(a_busy_owner_leaves_some_to_others);
    RUN(an_owner_that_is_gone_has_no_share);
    RUN(equals_have_equal_shares);
    return 0;
}
