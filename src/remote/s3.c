// SPDX-License-Identifier: Apache-2.0
/* Objects behind the S3 API. The key K of s3://BUCKET/PREFIX is the object PREFIX/K; addresses have
 * the form ENDPOINT/BUCKET/PREFIX/K, which every server knows.
 *
 * The server verifies what is stored: the signature covers the SHA-256 of an object. An ETag proves
 * only that it is an S3 API that answers, as those of encrypted objects are no hashes. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "remote/s3_internal.h"
#include "remote/s3_key.h"

#define BUCKET_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

enum {
    BUCKET_MIN = 3,
    BUCKET_MAX = 63,
    PREFIX_MAX_BYTES = 256, /* with a key it is below the limit of S3, 1024 bytes */
    TIMEOUT_DEFAULT_MS = 30 * 1000,
};

DEFINE_CLEANUP(curl_url_cleanup, CURLU *);
DEFINE_CLEANUP(curl_free, char *);

static struct s3 *s3_of(struct remote *remote)
{
    return (struct s3 *)remote;
}

static char *path_of(const struct s3 *s3, const char *key)
{
    return xasprintf("/%s/%s%s", s3->bucket, s3->prefix, key);
}

/* Returns whether a reply means that the object is not there; a missing bucket is another error. */
static bool reply_is_missing(struct s3 *s3, const struct s3_reply *reply)
{
    bool is_missing = reply->status == 404 && strcmp(reply->code, "NoSuchKey") == 0;

    if (is_missing || reply->status < 300)
        atomic_store(&s3->has_bucket, true);
    return is_missing;
}

/* Sets the error for a failed call on an object. Returns like err_set. */
static int object_failed(const struct s3 *s3, const struct s3_reply *reply, const char *what,
                         const char *key, struct err *err)
{
    (void)s3_explain(s3, reply, err);
    return err_wrap(err, "%s object '%.60s'", what, key);
}

static int object_missing(const struct s3 *s3, const char *key, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "no object '%.80s' in %.80s", key, s3->remote.where);
}

/* --- get -------------------------------------------------------------------------------------- */

static int s3_get(struct remote *remote, const char *key, struct buf *ret, struct err *err)
{
    struct s3 *s3 = s3_of(remote);
    cleanup_free char *path = path_of(s3, key);
    struct s3_reply reply;
    int r = buf_reserve(ret, 0);

    if (r < 0)
        return err_sys(err, r, "read object '%.80s'", key);
    r = s3_send(s3,
                &(struct s3_call){
                    .method = "GET",
                    .path = path,
                    .into = ret,
                    .into_max = REMOTE_OBJECT_MAX,
                    .is_object = true,
                },
                &reply, err);
    if (r < 0)
        return err_wrap(err, "read object '%.60s'", key);
    if (reply_is_missing(s3, &reply))
        return object_missing(s3, key, err);
    return reply.status == 200 ? 0 : object_failed(s3, &reply, "read", key, err);
}

/* Asks for the first byte of an object, as a reply to HEAD has no body that could tell an error. */
static int reason_get(struct s3 *s3, const char *path, struct s3_reply *ret, struct err *err)
{
    return s3_send(s3,
                   &(struct s3_call){
                       .method = "GET",
                       .path = path,
                       .header = &(struct sigv4_pair){ "range", "bytes=0-0" },
                   },
                   ret, err);
}

static int s3_size_of(struct remote *remote, const char *key, uint64_t *ret, struct err *err)
{
    struct s3 *s3 = s3_of(remote);
    cleanup_free char *path = path_of(s3, key);
    struct s3_reply reply, reason;
    int r = s3_send(s3, &(struct s3_call){ .method = "HEAD", .path = path }, &reply, err);

    if (r < 0)
        return err_wrap(err, "inspect object '%.60s'", key);
    if (reply.status == 200 && reply.length != UINT64_MAX) {
        (void)reply_is_missing(s3, &reply);
        *ret = reply.length;
        return 0;
    }
    if (reply.status == 404 && atomic_load(&s3->has_bucket))
        return object_missing(s3, key, err);
    r = reason_get(s3, path, &reason, err);
    if (r < 0)
        return err_wrap(err, "inspect object '%.60s'", key);
    /* It may have come in between. */
    if (reply_is_missing(s3, &reason) || (reply.status == 404 && reason.status < 300))
        return object_missing(s3, key, err);
    return object_failed(s3, reason.status < 300 ? &reply : &reason, "inspect", key, err);
}

/* --- put -------------------------------------------------------------------------------------- */

/* Returns 1 if the object has the bytes of a put, 0 if it has others, or a negative errno. */
static int object_is_same(struct s3 *s3, const struct remote_put *put, struct err *err)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(put->len);
    int r = s3_get(&s3->remote, put->key, &got, err);

    if (r < 0)
        return err->kind == ERR_EXHAUSTED || err->kind == ERR_NOT_FOUND ? 0 : r;
    return got.len == put->len && memcmp(got.data, put->data, put->len) == 0;
}

static int put_send(struct s3 *s3, const struct remote_put *put, bool is_absent,
                    struct s3_reply *ret, struct err *err)
{
    static const struct sigv4_pair none_match = { "if-none-match", "*" };
    cleanup_free char *path = path_of(s3, put->key);

    return s3_send(s3,
                   &(struct s3_call){
                       .method = "PUT",
                       .path = path,
                       .header = is_absent ? &none_match : NULL,
                       .data = put->data,
                       .len = put->len,
                   },
                   ret, err);
}

static int object_exists(const struct s3 *s3, const char *key, struct err *err)
{
    return err_set(err, ERR_EXISTS, "object '%.80s' exists in %.80s", key, s3->remote.where);
}

/* The server has found an object where none was to be: perhaps this put's own, whose first reply
 * was lost. */
static int put_conflict(struct s3 *s3, const struct remote_put *put, const struct s3_reply *reply,
                        struct err *err)
{
    int r = reply->is_again ? object_is_same(s3, put, err) : 0;

    if (r < 0)
        return r;
    return r == 1 ? 0 : object_exists(s3, put->key, err);
}

static int s3_put(struct remote *remote, const struct remote_put *put, struct err *err)
{
    struct s3 *s3 = s3_of(remote);
    bool is_absent = put->is_absent;
    struct s3_reply reply;
    uint64_t size;
    int r;

    /* Some servers do not know or ignore the condition, and the others need not get the bytes. */
    if (is_absent) {
        if (s3_size_of(remote, put->key, &size, err) == 0)
            return object_exists(s3, put->key, err);
        if (err->kind != ERR_NOT_FOUND)
            return err_wrap(err, "write object '%.60s'", put->key);
    }
    r = put_send(s3, put, is_absent, &reply, err);
    if (r == 0 && is_absent && reply.status == 501)
        r = put_send(s3, put, false, &reply, err);
    if (r < 0)
        return err_wrap(err, "write object '%.60s'", put->key);
    if (is_absent && reply.status == 412)
        return put_conflict(s3, put, &reply, err);
    if (reply.status != 200 || !reply.has_etag)
        return object_failed(s3, &reply, "write", put->key, err);
    (void)reply_is_missing(s3, &reply);
    return 0;
}

/* --- remove ----------------------------------------------------------------------------------- */

static int s3_remove(struct remote *remote, const char *key, struct err *err)
{
    struct s3 *s3 = s3_of(remote);
    cleanup_free char *path = path_of(s3, key);
    struct s3_reply reply;
    int r = s3_send(s3, &(struct s3_call){ .method = "DELETE", .path = path }, &reply, err);

    if (r < 0)
        return err_wrap(err, "remove object '%.60s'", key);
    if (reply_is_missing(s3, &reply) || reply.status == 204 || reply.status == 200)
        return 0;
    return object_failed(s3, &reply, "remove", key, err);
}

/* --- open ------------------------------------------------------------------------------------- */

/* Splits BUCKET[/PREFIX]. */
static int place_read(struct s3 *s3, const char *place, struct err *err)
{
    size_t len = strcspn(place, "/");
    const char *prefix = place[len] ? place + len + 1 : "";
    size_t prefix_len = strlen(prefix);

    if (len < BUCKET_MIN || len > BUCKET_MAX || strspn(place, BUCKET_BYTES) < len ||
        strchr("._-", *place))
        return err_set(err, ERR_INVALID, "'s3://%.80s' names no bucket: use s3://BUCKET[/PREFIX]",
                       place);
    s3->bucket = xasprintf("%.*s", (int)len, place);
    if (prefix_len > 1 && prefix[prefix_len - 1] == '/')
        prefix_len--;
    s3->prefix = xasprintf("%.*s", (int)prefix_len, prefix);
    if (prefix_len > 0 && (prefix_len > PREFIX_MAX_BYTES || !remote_key_is(s3->prefix)))
        return err_set(err, ERR_INVALID,
                       "'s3://%.120s': what follows the bucket cannot be a folder of objects",
                       place);
    if (prefix_len > 0) {
        free(s3->prefix);
        s3->prefix = xasprintf("%.*s/", (int)prefix_len, prefix);
    }
    return 0;
}

static bool host_is_loopback(const char *host)
{
    struct in_addr four = { 0 };

    /* libcurl asks no resolver for localhost. */
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

/* Takes an endpoint apart, which may have nothing but a scheme, a host and a port. */
static int endpoint_read(struct s3 *s3, const char *endpoint, bool is_insecure, struct err *err)
{
    cleanup_with(curl_url_cleanup_slot) CURLU *url = curl_url();
    cleanup_with(curl_free_slot) char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    bool is_http;

    if (url && !strpbrk(endpoint, "@?#") &&
        curl_url_set(url, CURLUPART_URL, endpoint, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
        scheme = url_part(url, CURLUPART_SCHEME);
        host = url_part(url, CURLUPART_HOST);
        port = url_part(url, CURLUPART_PORT);
        path = url_part(url, CURLUPART_PATH);
    }
    is_http = scheme && strcmp(scheme, "http") == 0;
    if (!scheme || !host || (!is_http && strcmp(scheme, "https") != 0) ||
        (path && strcmp(path, "/") != 0))
        return err_set(err, ERR_INVALID, "remote.endpoint '%.120s' is not https://HOST[:PORT]",
                       endpoint);
    if (is_http && !is_insecure && !host_is_loopback(host))
        return err_set(err, ERR_INVALID,
                       "remote.endpoint '%.120s' is not encrypted: use https://, or set "
                       "remote.insecure if the network is trusted",
                       endpoint);
    s3->host = xasprintf("%s%s%s", host, port ? ":" : "", port ? port : "");
    s3->endpoint = xasprintf("%s://%s", scheme, s3->host);
    return 0;
}

static bool is_set(const char *text)
{
    return text && *text;
}

static int region_read(struct s3 *s3, const char *region, struct err *err)
{
    const char *known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    s3->region = xstrdup(is_set(region) ? region : "us-east-1");
    if (strlen(s3->region) >= S3_CODE_SIZE || s3->region[strspn(s3->region, known)] != '\0')
        return err_set(err, ERR_INVALID, "remote.region '%.80s' is no name of a region", region);
    return 0;
}

static int key_file_read(struct s3 *s3, const char *path, struct err *err)
{
    cleanup_with(s3_key_done) struct s3_key key;

    s3->key_file = xstrdup(is_set(path) ? path : "");
    if (!is_set(path))
        return err_set(err, ERR_INVALID,
                       "%.80s needs remote.key-file, a file with ACCESS_KEY:SECRET_KEY",
                       s3->remote.where);
    return s3_key_read(path, &key, err);
}

static int s3_open(struct remote *remote, const struct remote_config *config, const char *place,
                   struct err *err)
{
    struct s3 *s3 = s3_of(remote);
    cleanup_free char *aws = NULL;
    int r;

    lock_init(&s3->lock, LOCK_REMOTE_CONNECTIONS);
    s3->timeout_ms = config->timeout_ms ? config->timeout_ms : TIMEOUT_DEFAULT_MS;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_INTERNAL, "libcurl cannot be used");
    r = place_read(s3, place, err);
    if (r == 0)
        r = region_read(s3, config->region, err);
    if (r < 0)
        return r;
    aws = xasprintf("https://s3.%s.amazonaws.com", s3->region);
    r = endpoint_read(s3, is_set(config->endpoint) ? config->endpoint : aws, config->is_insecure,
                      err);
    if (r < 0)
        return r;
    remote->where = xasprintf("s3://%s at %s", place, s3->endpoint);
    return key_file_read(s3, config->key_file, err);
}

static void s3_close(struct remote *remote)
{
    struct s3 *s3 = s3_of(remote);

    s3_connections_close(s3);
    lock_destroy(&s3->lock);
    free(s3->endpoint);
    free(s3->host);
    free(s3->bucket);
    free(s3->prefix);
    free(s3->region);
    free(s3->key_file);
}

const struct remote_ops remote_s3 = {
    .scheme = "s3://",
    .size = sizeof(struct s3),
    .open = s3_open,
    .close = s3_close,
    .put = s3_put,
    .get = s3_get,
    .size_of = s3_size_of,
    .remove = s3_remove,
    .list = s3_list,
};
