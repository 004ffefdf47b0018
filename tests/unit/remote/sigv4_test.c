// SPDX-License-Identifier: Apache-2.0
/* Signatures: the published vectors, and those of another signer if SIGV4_VECTORS names a file with
 * a JSON object a line (tests/system/remote/s3rver_test makes one). */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "remote/sigv4.h"

enum { AUTHORIZATION_MAX = 16 * 1024 };

#define TOKEN                                                                                      \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpS"  \
    "PfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDY"  \
    "wT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqK"  \
    "mlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
#define UNRESERVED "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

struct vector {
    const char *name, *method, *path;
    struct sigv4_pair query[4], headers[4];
    const char *body, *token, *signed_headers, *signature;
};

/* The test suite of AWS for signers: service "service", 2015-08-30T12:36:00Z. */
static const struct vector suite[] = {
    { .name = "get-header-value-trim",
      .headers = { { "my-header1", " value1" }, { "my-header2", " \"a   b   c\"" } },
      .signed_headers = "host;my-header1;my-header2;x-amz-date",
      .signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
    { .name = "get-unreserved",
      .path = "/" UNRESERVED,
      .signature = "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },
    { .name = "get-utf8",
      .path = "/\xe1\x88\xb4",
      .signature = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
    { .name = "get-vanilla",
      .signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    { .name = "get-vanilla-empty-query-key",
      .query = { { "Param1", "value1" } },
      .signature = "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb" },
    { .name = "get-vanilla-query-order-key-case",
      .query = { { "Param2", "value2" }, { "Param1", "value1" } },
      .signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
    { .name = "get-vanilla-query-unreserved",
      .query = { { UNRESERVED, UNRESERVED } },
      .signature = "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197" },
    { .name = "get-vanilla-utf8-query",
      .query = { { "\xe1\x88\xb4", "bar" } },
      .signature = "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04" },
    { .name = "post-header-key-sort",
      .method = "POST",
      .headers = { { "my-header1", "value1" } },
      .signed_headers = "host;my-header1;x-amz-date",
      .signature = "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c" },
    { .name = "post-header-value-case",
      .method = "POST",
      .headers = { { "my-header1", "VALUE1" } },
      .signed_headers = "host;my-header1;x-amz-date",
      .signature = "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d" },
    { .name = "post-sts-header-before",
      .method = "POST",
      .token = TOKEN,
      .signed_headers = "host;x-amz-date;x-amz-security-token",
      .signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead" },
    { .name = "post-vanilla",
      .method = "POST",
      .signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
    { .name = "post-vanilla-query",
      .method = "POST",
      .query = { { "Param1", "value1" } },
      .signature = "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11" },
    { .name = "post-vanilla-query-nonunreserved",
      .method = "POST",
      .query = { { "+", "/,?><`\";:\\|][{}" }, { "@#$%^", "" } },
      .signature = "66c82657c86e26fb25238d0e69f011edc4c6df5ae71119d7cb98ed9b87393c1e" },
    { .name = "post-vanilla-query-space",
      .method = "POST",
      .query = { { "p", "" } },
      .signature = "e71688addb58a26418614085fb730ba3faa623b461c17f48f2fbdb9361b94a9b" },
    { .name = "post-x-www-form-urlencoded",
      .method = "POST",
      .headers = { { "content-type", "application/x-www-form-urlencoded" } },
      .body = "Param1=value1",
      .signed_headers = "content-type;host;x-amz-date",
      .signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a" },
};

/* The examples in the documentation of the S3 API: 2013-05-24T00:00:00Z. */
static const struct vector examples[] = {
    { .name = "GET Object",
      .path = "/test.txt",
      .headers = { { "range", "bytes=0-9" } },
      .signed_headers = "host;range;x-amz-content-sha256;x-amz-date",
      .signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
    { .name = "PUT Object",
      .method = "PUT",
      .path = "/test%24file.text",
      .headers = { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
                   { "x-amz-storage-class", "REDUCED_REDUNDANCY" } },
      .body = "Welcome to Amazon S3.",
      .signed_headers = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      .signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
    { .name = "GET Bucket Lifecycle",
      .query = { { "lifecycle", "" } },
      .signed_headers = "host;x-amz-content-sha256;x-amz-date",
      .signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
    { .name = "GET Bucket (List Objects)",
      .query = { { "prefix", "J" }, { "max-keys", "2" } },
      .signed_headers = "host;x-amz-content-sha256;x-amz-date",
      .signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
};

static size_t pairs_count(const struct sigv4_pair *pairs, size_t max)
{
    size_t count = 0;

    while (count < max && pairs[count].name)
        count++;
    return count;
}

/* `request` has what all vectors of a table share. */
static void vector_check(const struct vector *vector, struct sigv4_request request)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(AUTHORIZATION_MAX);
    cleanup_with(buf_done) struct buf wanted = BUF_INIT(AUTHORIZATION_MAX);
    const char *body = vector->body ? vector->body : "";
    char hash[SIGV4_HASH_SIZE], date[SIGV4_DATE_SIZE];

    sigv4_hash(body, strlen(body), hash);
    request.method = vector->method ? vector->method : "GET";
    request.path = vector->path ? vector->path : "/";
    request.query = vector->query;
    request.query_count = pairs_count(vector->query, ARRAY_SIZE(vector->query));
    request.headers = vector->headers;
    request.header_count = pairs_count(vector->headers, ARRAY_SIZE(vector->headers));
    request.payload_hash = hash;
    request.region = "us-east-1";
    request.session_token = vector->token;
    CHECK(sigv4_sign(&request, date, &got) == 0, "(%s)", vector->name);
    CHECK(buf_printf(&wanted,
                     "AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request, "
                     "SignedHeaders=%s, Signature=%s",
                     request.access_key, date, request.service,
                     vector->signed_headers ? vector->signed_headers : "host;x-amz-date",
                     vector->signature) == 0);
    CHECK(strcmp(got.data, wanted.data) == 0, "(%s: got '%s', wanted '%s')", vector->name, got.data,
          wanted.data);
}

static void signatures_are_those_of_the_test_suite(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(suite); i++)
        vector_check(&suite[i], (struct sigv4_request){
                                    .host = "example.amazonaws.com",
                                    .service = "service",
                                    .time_s = 1440938160,
                                    .access_key = "AKIDEXAMPLE",
                                    .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                });
}

static void signatures_are_those_of_the_examples_for_s3(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
        vector_check(&examples[i], (struct sigv4_request){
                                       .host = "examplebucket.s3.amazonaws.com",
                                       .service = "s3",
                                       .time_s = 1369353600,
                                       .access_key = "AKIAIOSFODNN7EXAMPLE",
                                       .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                   });
}

static void a_query_is_sorted_as_it_is_encoded(void)
{
    static const struct sigv4_pair query[] = { { "b", "" },  { "a!", "1" }, { "a", "2" },
                                               { "a-", "" }, { "a", "1/" }, { "\xc3\xa4", " " } };
    cleanup_with(buf_done) struct buf text = BUF_INIT(256);
    struct sigv4_pair many[SIGV4_PAIRS_MAX + 1];

    CHECK(sigv4_query_add(&text, query, ARRAY_SIZE(query)) == 0);
    CHECK_TEXT(text.data, "%C3%A4=%20&a=1%2F&a=2&a%21=1&a-=&b=");
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = query[0];
    CHECK(sigv4_query_add(&text, many, ARRAY_SIZE(many)) == -E2BIG);
}

/* --- vectors of another signer ---------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    CHECK(text, "(%s)", name);
    return text;
}

static size_t pairs_of(const json_t *object, const char *name, struct sigv4_pair *ret)
{
    const json_t *array = json_object_get(object, name);
    size_t count = json_array_size(array);

    CHECK(count <= SIGV4_PAIRS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(array, i);

        ret[i].name = json_string_value(json_array_get(pair, 0));
        ret[i].value = json_string_value(json_array_get(pair, 1));
    }
    return count;
}

static void line_check(const char *line)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(AUTHORIZATION_MAX);
    cleanup_json json_t *object = json_loads(line, 0, NULL);
    struct sigv4_pair query[SIGV4_PAIRS_MAX], headers[SIGV4_PAIRS_MAX];
    char date[SIGV4_DATE_SIZE];
    struct sigv4_request request;

    CHECK(object, "(%s)", line);
    request = (struct sigv4_request){
        .method = text_of(object, "method"),
        .host = text_of(object, "host"),
        .path = text_of(object, "path"),
        .query = query,
        .query_count = pairs_of(object, "query", query),
        .headers = headers,
        .header_count = pairs_of(object, "headers", headers),
        .payload_hash = text_of(object, "hash"),
        .time_s = (uint64_t)json_integer_value(json_object_get(object, "time")),
        .region = text_of(object, "region"),
        .service = text_of(object, "service"),
        .access_key = text_of(object, "access"),
        .secret_key = text_of(object, "secret"),
        .session_token = text_of(object, "token"),
    };
    CHECK(sigv4_sign(&request, date, &got) == 0);
    CHECK(strcmp(got.data, text_of(object, "authorization")) == 0, "(got '%s' for %s)", got.data,
          line);
}

static void signatures_are_those_of_another_signer(void)
{
    FILE *file = fopen(getenv("SIGV4_VECTORS"), "re");
    size_t size = 0, count = 0;
    char *line = NULL;

    CHECK(file);
    for (; getline(&line, &size, file) > 0; count++)
        line_check(line);
    CHECK(count > 0);
    free(line);
    (void)fclose(file);
}

int main(void)
{
    RUN(signatures_are_those_of_the_test_suite);
    RUN(signatures_are_those_of_the_examples_for_s3);
    RUN(a_query_is_sorted_as_it_is_encoded);
    if (getenv("SIGV4_VECTORS"))
        RUN(signatures_are_those_of_another_signer);
    return 0;
}
