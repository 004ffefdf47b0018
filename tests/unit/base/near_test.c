// SPDX-License-Identifier: Apache-2.0
#include "base/text/near.h"
#include "check.h"

static void a_slip_of_the_pen_is_near(void)
{
    CHECK(word_distance("snapshot", "snapshot") == 0);
    CHECK(word_distance("snapshto", "snapshot") == 1, "(swapped)");
    CHECK(word_distance("snapsho", "snapshot") == 1, "(left out)");
    CHECK(word_distance("snappshot", "snapshot") == 1, "(put in)");
    CHECK(word_distance("snapsjot", "snapshot") == 1, "(changed)");
    CHECK(word_distance("memroy", "memory") == 1);
    CHECK(word_distance("inspekct", "inspect") == 1);
    CHECK(word_distance("insprkt", "inspect") == 2);
}

static void another_word_is_not(void)
{
    CHECK(word_distance("frobnicate", "inspect") > NEAR_MAX);
    CHECK(word_distance("xx", "rm") > NEAR_MAX, "(most of a word)");
    CHECK(word_distance("", "ls") > NEAR_MAX);
    CHECK(word_distance("ls", "") > NEAR_MAX);
    CHECK(word_distance("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a") > NEAR_MAX);
}

int main(void)
{
    RUN(a_slip_of_the_pen_is_near);
    RUN(another_word_is_not);
    return 0;
}
