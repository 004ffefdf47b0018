// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "console/throttle.h"

enum { START_MS = 1000000 };

static void some_failures_are_free_and_more_are_not(void)
{
    static struct throttle throttle;

    for (unsigned i = 0; i < THROTTLE_FAILURES; i++) {
        CHECK(throttle_check(&throttle, "10.0.0.1", START_MS) == 0);
        throttle_add(&throttle, "10.0.0.1", START_MS);
    }
    CHECK(throttle_check(&throttle, "10.0.0.1", START_MS) == THROTTLE_PAUSE_MS);
    CHECK(throttle_check(&throttle, "10.0.0.2", START_MS) == 0);
    CHECK(throttle_check(&throttle, "10.0.0.1", START_MS + THROTTLE_PAUSE_MS) == 0);
    throttle_add(&throttle, "10.0.0.1", START_MS + THROTTLE_PAUSE_MS);
    CHECK(throttle_check(&throttle, "10.0.0.1", START_MS + THROTTLE_PAUSE_MS) > 0);
    CHECK(throttle_check(&throttle, "10.0.0.1", START_MS + 3600 * 1000) == 0);
}

static void many_addresses_do_not_hide_one_that_fails_often(void)
{
    static struct throttle throttle;
    char address[THROTTLE_ADDRESS_SIZE];

    for (unsigned i = 0; i < THROTTLE_FAILURES; i++)
        throttle_add(&throttle, "10.0.0.1", START_MS);
    for (unsigned i = 0; i < 4 * THROTTLE_ADDRESSES; i++) {
        (void)snprintf(address, sizeof(address), "10.1.%u.%u", i / 256, i % 256);
        throttle_add(&throttle, address, START_MS);
    }
    CHECK(throttle_check(&throttle, "10.0.0.1", START_MS) > 0);
}

int main(void)
{
    RUN(some_failures_are_free_and_more_are_not);
    RUN(many_addresses_do_not_hide_one_that_fails_often);
    return 0;
}
