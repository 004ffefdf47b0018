/* What is said to an upstream proxy until it has connected to a target: SOCKS5 (RFC 1928, 1929) or
 * HTTP CONNECT. Does no input or output itself. The target is always an address, the one that the
 * policy was asked about; a proxy that resolved a name could reach another one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/proxy.h"

enum {
    PROXY_HEAD_MAX = 8192, /* of the reply to CONNECT */
    PROXY_OUT_MAX = 1024,  /* of one message to the proxy */
    PROXY_REASON_SIZE = 48,
};

enum proxy_state {
    PROXY_TALKING,
    PROXY_READY, /* what follows is between client and target */
    PROXY_FAILED,
};

enum proxy_step { PROXY_METHOD, PROXY_LOGIN, PROXY_REPLY, PROXY_HEAD };

struct proxy_talk {
    const struct net_proxy *proxy; /* of the caller */
    struct net_address target;
    uint16_t port;
    enum proxy_state state;
    enum proxy_step step;
    bool blames_target; /* of PROXY_FAILED: another address of the target may do better */
    char reason[PROXY_REASON_SIZE];
    uint8_t out[PROXY_OUT_MAX]; /* to be sent, from out_sent on */
    size_t out_len, out_sent;
    uint8_t in[PROXY_HEAD_MAX]; /* what was received of this step */
    size_t in_len;
};

/* Starts with the first message in `out`. */
void proxy_talk_start(struct proxy_talk *talk, const struct net_proxy *proxy,
                      const struct net_address *target, uint16_t port);

/* Takes bytes from the proxy and changes the state, or fills `out`. Returns how many of them
 * belonged to the talk: all of them unless the state is then another one than PROXY_TALKING. */
size_t proxy_talk_take(struct proxy_talk *talk, const void *data, size_t len);
