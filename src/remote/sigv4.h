/* Signature Version 4 of AWS: signs an HTTP request with a secret key. Pure functions.
 *
 * The signature covers the method, the path, the query, the hash of the payload and these headers,
 * which the caller sends as they were signed: host, x-amz-date, x-amz-security-token if there is a
 * session token, and for the service "s3" x-amz-content-sha256, the payload hash. Paths of "s3" are
 * signed as they are sent; those of other services are percent-encoded once more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

enum { SIGV4_PAIRS_MAX = 16, SIGV4_DATE_SIZE = 17, SIGV4_HASH_SIZE = 65 };

struct sigv4_pair {
    const char *name, *value;
};

struct sigv4_request {
    const char *method, *host;
    const char *path; /* as it is sent, from its first slash */
    const struct sigv4_pair *query;
    size_t query_count;
    const struct sigv4_pair *headers; /* more headers to sign: lower-case names, each once */
    size_t header_count;
    const char *payload_hash; /* of sigv4_hash */
    uint64_t time_s;          /* since 1970 */
    const char *region, *service, *access_key, *secret_key;
    const char *session_token; /* "": none */
};

/* Writes the SHA-256 of a payload as hexadecimal digits. */
void sigv4_hash(const void *data, size_t len, char ret[SIGV4_HASH_SIZE]);

/* Writes the values of x-amz-date and, behind what the buffer has, of Authorization. Returns 0;
 * -E2BIG for more than SIGV4_PAIRS_MAX parameters or headers, its own included; -ENOBUFS or
 * -ENOMEM; or -EIO if OpenSSL fails. */
int sigv4_sign(const struct sigv4_request *request, char ret_date[SIGV4_DATE_SIZE],
               struct buf *ret_authorization);

/* Appends a query as it is signed: sorted and percent-encoded. Returns 0, -E2BIG, -ENOBUFS or
 * -ENOMEM. */
int sigv4_query_add(struct buf *to, const struct sigv4_pair *query, size_t count);
