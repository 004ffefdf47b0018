// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/text/hex.h"

enum { HEX_BYTES_MAX = 64 };

int random_bytes(void *ret, size_t len)
{
    char *to = ret;

    while (len > 0) {
        ssize_t n = getrandom(to, len, 0);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            to += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int random_hex(char *ret, size_t bytes)
{
    unsigned char random[HEX_BYTES_MAX];
    int r = bytes > sizeof(random) ? -EINVAL : random_bytes(random, bytes);

    if (r == 0)
        hex_encode(random, bytes, ret);
    return r;
}

uint64_t random_u64(void)
{
    uint64_t random;

    if (random_bytes(&random, sizeof(random)) < 0)
        random = clock_ns();
    return random;
}
