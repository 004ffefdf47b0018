// SPDX-License-Identifier: Apache-2.0
#include "remote/sigv4.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/hex.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

enum {
    CANONICAL_MAX = 64 * 1024,
    SCOPE_MAX = 256,
    DAY_LEN = 8, /* of the date that x-amz-date begins with */
    OWN_HEADERS = 4,
};

_Static_assert(SIGV4_HASH_SIZE == HEX_SIZE(SHA256_DIGEST_LENGTH), "a hash in hexadecimal digits");

void sigv4_hash(const void *data, size_t len, char ret[SIGV4_HASH_SIZE])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    (void)SHA256(data, len, hash);
    hex_encode(hash, sizeof(hash), ret);
}

/* --- query ------------------------------------------------------------------------------------ */

static bool unreserved_is(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c));
}

/* Appends a text with all bytes percent-encoded but the unreserved ones and those of `kept`. */
static int encoded_add(struct buf *to, const char *text, const char *kept)
{
    int r = buf_add_str(to, "");

    for (; r == 0 && *text; text++) {
        if (unreserved_is(*text) || strchr(kept, *text))
            r = buf_add(to, text, 1);
        else
            r = buf_printf(to, "%%%02X", (unsigned char)*text);
    }
    return r;
}

/* Compares two texts as their percent-encoded forms would compare. */
static int encoded_compare(const char *one, const char *other)
{
    int first, second;

    while (*one && *one == *other) {
        one++;
        other++;
    }
    first = *one == '\0' || unreserved_is(*one) ? *one : '%';
    second = *other == '\0' || unreserved_is(*other) ? *other : '%';
    return first != second ? first - second : (unsigned char)*one - (unsigned char)*other;
}

static int query_compare(const void *one, const void *other)
{
    const struct sigv4_pair *first = one, *second = other;
    int order = encoded_compare(first->name, second->name);

    return order != 0 ? order : encoded_compare(first->value, second->value);
}

int sigv4_query_add(struct buf *to, const struct sigv4_pair *query, size_t count)
{
    struct sigv4_pair sorted[SIGV4_PAIRS_MAX];
    int r = 0;

    if (count > ARRAY_SIZE(sorted))
        return -E2BIG;
    for (size_t i = 0; i < count; i++)
        sorted[i] = query[i];
    qsort(sorted, count, sizeof(sorted[0]), query_compare);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = i > 0 ? buf_add_str(to, "&") : 0;
        if (r == 0)
            r = encoded_add(to, sorted[i].name, "");
        if (r == 0)
            r = buf_add_str(to, "=");
        if (r == 0)
            r = encoded_add(to, sorted[i].value, "");
    }
    return r;
}

/* --- headers ---------------------------------------------------------------------------------- */

struct headers {
    struct sigv4_pair pairs[SIGV4_PAIRS_MAX];
    size_t count;
};

static int header_compare(const void *one, const void *other)
{
    const struct sigv4_pair *first = one, *second = other;

    return strcmp(first->name, second->name);
}

static bool service_is_s3(const struct sigv4_request *request)
{
    return strcmp(request->service, "s3") == 0;
}

/* Gathers all headers to sign, sorted by their names. */
static int headers_gather(const struct sigv4_request *request, const char *date,
                          struct headers *ret)
{
    const char *token = request->session_token ? request->session_token : "";

    if (request->header_count > SIGV4_PAIRS_MAX - OWN_HEADERS)
        return -E2BIG;
    for (size_t i = 0; i < request->header_count; i++)
        ret->pairs[ret->count++] = request->headers[i];
    ret->pairs[ret->count++] = (struct sigv4_pair){ "host", request->host };
    ret->pairs[ret->count++] = (struct sigv4_pair){ "x-amz-date", date };
    if (service_is_s3(request))
        ret->pairs[ret->count++] =
            (struct sigv4_pair){ "x-amz-content-sha256", request->payload_hash };
    if (*token)
        ret->pairs[ret->count++] = (struct sigv4_pair){ "x-amz-security-token", token };
    qsort(ret->pairs, ret->count, sizeof(ret->pairs[0]), header_compare);
    return 0;
}

/* Appends a value without blanks around it, and with one for several inside. */
static int value_add(struct buf *to, const char *value)
{
    const char *blanks = " \t\r\n";
    int r = 0;

    value += strspn(value, blanks);
    while (r == 0 && *value) {
        size_t word = strcspn(value, blanks), gap = strspn(value + word, blanks);

        r = buf_add(to, value, word);
        value += word + gap;
        if (r == 0 && gap > 0 && *value)
            r = buf_add_str(to, " ");
    }
    return r;
}

static int names_add(struct buf *to, const struct headers *headers)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < headers->count; i++)
        r = buf_printf(to, "%s%s", i > 0 ? ";" : "", headers->pairs[i].name);
    return r;
}

/* --- signature -------------------------------------------------------------------------------- */

static int canonical_make(const struct sigv4_request *request, const struct headers *headers,
                          struct buf *ret)
{
    int r = buf_printf(ret, "%s\n", request->method);

    if (r == 0)
        r = service_is_s3(request) ? buf_add_str(ret, request->path)
                                   : encoded_add(ret, request->path, "/");
    if (r == 0)
        r = buf_add_str(ret, "\n");
    if (r == 0)
        r = sigv4_query_add(ret, request->query, request->query_count);
    if (r == 0)
        r = buf_add_str(ret, "\n");
    for (size_t i = 0; r == 0 && i < headers->count; i++) {
        r = buf_printf(ret, "%s:", headers->pairs[i].name);
        if (r == 0)
            r = value_add(ret, headers->pairs[i].value);
        if (r == 0)
            r = buf_add_str(ret, "\n");
    }
    if (r == 0)
        r = buf_add_str(ret, "\n");
    if (r == 0)
        r = names_add(ret, headers);
    return r < 0 ? r : buf_printf(ret, "\n%s", request->payload_hash);
}

struct hmac_key {
    unsigned char bytes[SHA256_DIGEST_LENGTH];
};

/* Replaces the key by the HMAC of a text with it. */
static int key_advance(struct hmac_key *key, const char *text, size_t len)
{
    struct hmac_key from = *key;
    bool is_made = HMAC(EVP_sha256(), from.bytes, sizeof(from.bytes), (const unsigned char *)text,
                        len, key->bytes, NULL) != NULL;

    OPENSSL_cleanse(&from, sizeof(from));
    return is_made ? 0 : -EIO;
}

/* Derives the key of a day, region and service from the secret. */
static int key_derive(const struct sigv4_request *request, const char *date, struct hmac_key *ret)
{
    cleanup_with(buf_done) struct buf secret = BUF_INIT(CANONICAL_MAX);
    int r = buf_printf(&secret, "AWS4%s", request->secret_key);

    if (r == 0 && !HMAC(EVP_sha256(), secret.data, (int)secret.len, (const unsigned char *)date,
                        DAY_LEN, ret->bytes, NULL))
        r = -EIO;
    if (secret.data)
        OPENSSL_cleanse(secret.data, secret.len);
    if (r == 0)
        r = key_advance(ret, request->region, strlen(request->region));
    if (r == 0)
        r = key_advance(ret, request->service, strlen(request->service));
    return r < 0 ? r : key_advance(ret, "aws4_request", strlen("aws4_request"));
}

int sigv4_sign(const struct sigv4_request *request, char ret_date[SIGV4_DATE_SIZE],
               struct buf *ret_authorization)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CANONICAL_MAX), scope = BUF_INIT(SCOPE_MAX);
    struct headers headers = { .count = 0 };
    time_t time_s = (time_t)request->time_s;
    char hash[SIGV4_HASH_SIZE], signature[SIGV4_HASH_SIZE];
    struct hmac_key key;
    struct tm tm;
    int r;

    if (!gmtime_r(&time_s, &tm) || strftime(ret_date, SIGV4_DATE_SIZE, "%Y%m%dT%H%M%SZ", &tm) == 0)
        return -EINVAL;
    r = headers_gather(request, ret_date, &headers);
    if (r == 0)
        r = canonical_make(request, &headers, &text);
    if (r == 0)
        r = buf_printf(&scope, "%.*s/%s/%s/aws4_request", DAY_LEN, ret_date, request->region,
                       request->service);
    if (r < 0)
        return r;
    sigv4_hash(text.data, text.len, hash);
    buf_clear(&text);
    r = buf_printf(&text, ALGORITHM "\n%s\n%s\n%s", ret_date, scope.data, hash);
    if (r == 0)
        r = key_derive(request, ret_date, &key);
    if (r == 0)
        r = key_advance(&key, text.data, text.len);
    if (r < 0)
        return r;
    hex_encode(key.bytes, sizeof(key.bytes), signature);
    r = buf_printf(ret_authorization,
                   ALGORITHM " Credential=%s/%s, SignedHeaders=", request->access_key, scope.data);
    if (r == 0)
        r = names_add(ret_authorization, &headers);
    return r < 0 ? r : buf_printf(ret_authorization, ", Signature=%s", signature);
}
