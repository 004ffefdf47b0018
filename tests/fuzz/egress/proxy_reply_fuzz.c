// SPDX-License-Identifier: Apache-2.0
/* What an upstream proxy sends to holt-net. The first byte selects the protocol and whether there
 * is a login; the rest comes in two parts, which must give what it gives in one. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "egress/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t talk_take(struct proxy_talk *talk, const uint8_t *data, size_t len)
{
    size_t used = proxy_talk_take(talk, data, len);

    if (used > len || (talk->state == PROXY_TALKING && used != len))
        abort();
    if (talk->out_len > sizeof(talk->out) || talk->in_len > sizeof(talk->in))
        abort();
    if ((talk->state == PROXY_FAILED) != (talk->reason[0] != '\0'))
        abort();
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = { "socks5://h:1", "socks5://u:p@h:1", "http://h:1",
                                        "http://u:p@h:1" };
    static struct proxy_talk whole, parts;
    const struct net_address target = { .family = AF_INET, .bytes = { 192, 0, 2, 1 } };
    struct net_proxy proxy;
    struct err err = { 0 };
    size_t half, used, used_parts;

    if (size == 0 || net_proxy_parse(urls[data[0] % 4], &proxy, &err) < 0)
        return 0;
    half = (data[0] / 4U) % size;
    proxy_talk_start(&whole, &proxy, &target, 443);
    used = talk_take(&whole, data + 1, size - 1);
    proxy_talk_start(&parts, &proxy, &target, 443);
    used_parts = talk_take(&parts, data + 1, half);
    if (parts.state == PROXY_TALKING)
        used_parts += talk_take(&parts, data + 1 + half, size - 1 - half);
    if (used != used_parts || whole.state != parts.state || strcmp(whole.reason, parts.reason) != 0)
        abort();
    return 0;
}
