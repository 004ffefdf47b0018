// SPDX-License-Identifier: Apache-2.0
/* What sandboxes and name servers send to holt-net. The first byte selects the parser. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "egress/dns.h"
#include "egress/hello.h"
#include "egress/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void http_run(const char *text, size_t len)
{
    struct http_head head;
    struct http_stream stream;
    long n;

    (void)http_head_is_http(text, len);
    if (http_head_parse(text, len, &head) <= 0)
        return;
    if (head.size > len || head.path + head.path_len > text + len)
        abort();
    http_stream_begin(&stream, &head);
    n = http_stream_pass(&stream, text + head.size, len - head.size);
    if (n > (long)(len - head.size))
        abort();
}

static void query_run(const uint8_t *data, size_t len)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    const struct dns_reason reason = { .code = DNS_BLOCKED, .text = "no" };
    const struct dns_reply reply = { .code = DNS_NO_NAME };
    struct dns_query query;

    if (dns_query_parse(data, len, &query) == 0) {
        (void)dns_query_write(&query, 1, &out);
        (void)dns_reply_write(&query, &reply, &reason, query.udp_max, &out);
    }
}

/* The reply is one to a query for its own question. */
static void reply_run(const uint8_t *data, size_t len)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT((size_t)DNS_MESSAGE_MAX * 4);
    const struct dns_reason reason = { .code = DNS_NO_REASON };
    struct dns_reply reply = { .count = 0 };
    struct dns_query query;
    uint8_t copy[1024];

    if (len < 12 || len > sizeof(copy))
        return;
    memcpy(copy, data, len);
    copy[2] = 1; /* a query with one question and nothing else */
    copy[3] = 0;
    copy[4] = 0;
    copy[5] = 1;
    memset(copy + 6, 0, 6);
    if (dns_query_parse(copy, len, &query) < 0)
        return;
    if (dns_reply_parse(data, len, &query, query.id, &reply) == 0) {
        (void)dns_reply_write(&query, &reply, &reason, query.udp_max, &out);
        while (reply.count > 0)
            dns_reply_remove(&reply, 0);
    }
    dns_reply_done(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hello hello;

    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        (void)hello_is_tls(data + 1, size - 1);
        (void)hello_parse(data + 1, size - 1, &hello);
        break;
    case 1:
        http_run((const char *)data + 1, size - 1);
        break;
    case 2:
        query_run(data + 1, size - 1);
        break;
    default:
        reply_run(data + 1, size - 1);
        break;
    }
    return 0;
}
