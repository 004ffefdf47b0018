// SPDX-License-Identifier: Apache-2.0
/* What servers and sandboxes send inside TLS that ends in holt-net. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "egress/http/h2.h"
#include "egress/http/message.h"
#include "egress/http/rewrite.h"
#include "egress/http/sieve.h"
#include "egress/secret/json_place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 4 * 1024 * 1024, H2_OUT_MAX = 64 * 1024 };

static const char secrets_text[] =
    "[{\"name\":\"A\",\"id\":\"1\",\"placeholder\":\"holt-placeholder-1\",\"value\":\"the-secret-"
    "value\","
    "\"hosts\":[\"api.test\"],\"place\":\"header\",\"field\":\"Authorization\",\"template\":"
    "\"Bearer "
    "{}\"},"
    "{\"name\":\"B\",\"id\":\"2\",\"placeholder\":\"holt-placeholder-2\",\"value\":\"second-"
    "value\","
    "\"hosts\":[\"api.test\"],\"place\":\"query\",\"field\":\"key\",\"template\":\"{}\"},"
    "{\"name\":\"C\",\"id\":\"3\",\"placeholder\":\"holt-placeholder-3\",\"value\":\"third-value\","
    "\"hosts\":[\"api.test\"],\"place\":\"json\",\"field\":\"/a/0\",\"template\":\"{}\"},"
    "{\"name\":\"D\",\"id\":\"4\",\"placeholder\":\"holt-placeholder-4\",\"value\":\"fourth-"
    "value\","
    "\"hosts\":[\"api.test\"],\"place\":\"basic\",\"field\":\"\",\"template\":\"{}\"}]";

static struct broker_secrets *secrets_make(void)
{
    json_t *list = json_loads(secrets_text, 0, NULL);
    struct broker_secrets *secrets = broker_secrets_read(list);

    json_decref(list);
    return secrets;
}

static void reply_try(const char *text, size_t len)
{
    struct http_reply reply;
    struct http_body_reader reader;
    size_t used;

    if (http_reply_parse(text, len, false, &reply) != 1)
        return;
    http_body_start(&reader, reply.framing, reply.length);
    for (used = reply.size; used < len && !reader.is_done;) {
        struct http_text data;
        size_t part = len - used < 3 ? len - used : 3;
        long n = http_body_take(&reader, text + used, part, &data);

        if (n < 0)
            return;
        if ((size_t)n > part || data.len > part)
            abort();
        used += (size_t)n;
    }
}

static void sieve_try(const struct broker_secrets *secrets, const char *text, size_t len)
{
    struct sieve sieve = { .found = -1 };
    struct buf out = BUF_INIT(OUT_MAX);
    size_t half = len / 2;

    if (sieve_start(&sieve, secrets->values, (struct http_text){ "gzip", 4 }, false) == 0 &&
        sieve_push(&sieve, text, half, &out) == 0 &&
        sieve_push(&sieve, text + half, len - half, &out) == 0 && sieve_end(&sieve, &out) == 0 &&
        (out.len != len || (len > 0 && memcmp(out.data, text, len) != 0)))
        abort();
    sieve_done(&sieve);
    buf_done(&out);
}

static void request_try(const struct rewrite_way *way, const char *text, size_t len)
{
    struct http_head head;
    struct http_fields fields;
    struct rewrite rewrite;

    if (http_head_parse(text, len, &head) != 1 || http_fields_parse(text, head.size, &fields) < 0)
        return;
    rewrite_init(&rewrite);
    if (rewrite_head(way, &head, &fields, &rewrite) == 0) {
        /* No placeholder is left, and nothing begins a second line. */
        for (size_t i = 0; i < rewrite.draft.count; i++) {
            struct http_text value = http_draft_value(&rewrite.draft, i);

            if ((value.len > 0 && memchr(value.at, '\n', value.len)) ||
                needles_find(way->secrets->placeholders, value.at, value.len) >= 0)
                abort();
        }
    }
    rewrite_done(&rewrite);
}

static void json_try(const struct rewrite_way *way, const char *text, size_t len)
{
    struct buf body = BUF_INIT(OUT_MAX);
    struct rewrite rewrite;

    rewrite_init(&rewrite);
    if (buf_add(&body, text, len) == 0 && rewrite_json(way, &body, &rewrite) == 0 &&
        needles_find(way->secrets->placeholders, body.data ? body.data : "", body.len) >= 0)
        abort();
    rewrite_done(&rewrite);
    buf_done(&body);
}

static void h2_try(const char *text, size_t len)
{
    struct http_draft fields;
    struct buf out = BUF_INIT(OUT_MAX);
    struct h2 *h2 = h2_new();

    http_draft_init(&fields);
    if (h2 &&
        h2_request(h2, &(struct h2_request){ .method = "GET",
                                             .authority = "api.test",
                                             .target = { "/", 1 },
                                             .fields = &fields }) == 0 &&
        h2_send(h2, &out, H2_OUT_MAX) == 0 && h2_receive(h2, text, len) == 0) {
        (void)h2_send(h2, &out, H2_OUT_MAX);
        if (h2_reply(h2)->data.len > 0)
            h2_consume(h2, h2_reply(h2)->data.len);
    }
    http_draft_done(&fields);
    buf_done(&out);
    h2_free(h2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct broker_secrets *secrets = secrets_make();
    const struct rewrite_way way = { .secrets = secrets, .name = "api.test", .port = 443 };
    /* A copy of its own, so that a read behind it is noticed. */
    char *text = size > 1 ? malloc(size - 1) : NULL;

    if (text) {
        memcpy(text, data + 1, size - 1);
        switch (data[0] % 5) {
        case 0:
            reply_try(text, size - 1);
            break;
        case 1:
            json_try(&way, text, size - 1);
            break;
        case 2:
            sieve_try(secrets, text, size - 1);
            break;
        case 3:
            request_try(&way, text, size - 1);
            break;
        default:
            h2_try(text, size - 1);
            break;
        }
    }
    free(text);
    broker_secrets_unref(secrets);
    return 0;
}
