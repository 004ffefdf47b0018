// SPDX-License-Identifier: Apache-2.0
/* The push of the OCI distribution specification: HEAD tells whether the registry has a blob; POST
 * begins an upload, or mounts the blob from another repository; PATCH sends bytes, each reply has
 * the address for the next request; PUT with the digest ends it. */
#include "image/push.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "image/session.h"
#include "image/talk.h"

enum {
    REPORT_MS = 200,
    LOGINS_MAX = 2,       /* for one request: a token may expire */
    RESTARTS_MAX = 3,     /* of one blob whose upload the registry has forgotten */
    SETTLE_SECONDS = 600, /* in which a registry verifies a large blob */
    REPLY_MAX = 16 * 1024,
};

DEFINE_CLEANUP(curl_easy_cleanup, CURL *);
DEFINE_CLEANUP(curl_slist_free_all, struct curl_slist *);
DEFINE_CLEANUP(curl_url_cleanup, CURLU *);
DEFINE_CLEANUP(curl_free, char *);

struct pusher {
    const struct push *push;
    struct session *session;
    CURL *easy;
    uint64_t sent, total, reported_ms;
};

/* What is sent from a file. */
struct body {
    struct pusher *pusher;
    int fd;
    uint64_t begin, offset, end;
};

struct request {
    const char *method, *url;
    const char *type;  /* of the body */
    struct body *body; /* NULL: none */
};

struct reply {
    CURLcode code;
    long status; /* 0: there was no reply */
    char location[URL_MAX];
    uint64_t received; /* of the header Range */
    struct buf text;
};

/* --- one request ------------------------------------------------------------------------------ */

static void report(struct pusher *pusher)
{
    uint64_t now_ms = clock_ms();

    if (now_ms < pusher->reported_ms + REPORT_MS)
        return;
    pusher->reported_ms = now_ms;
    talk_send(json_pack("{s:s, s:I, s:I}", "do", "progress", "bytes", (json_int_t)pusher->sent,
                        "total", (json_int_t)pusher->total));
}

static size_t body_read(char *data, size_t size, size_t count, void *context)
{
    struct body *body = context;
    size_t room = size * count;
    ssize_t n;

    if (room > body->end - body->offset)
        room = (size_t)(body->end - body->offset);
    n = pread(body->fd, data, room, (off_t)body->offset);
    if (n < 0 || (n == 0 && room > 0))
        return CURL_READFUNC_ABORT;
    body->offset += (size_t)n;
    body->pusher->sent += (size_t)n;
    report(body->pusher);
    return (size_t)n;
}

/* Called before a body is sent again, after a redirect. */
static int body_seek(void *context, curl_off_t offset, int origin)
{
    struct body *body = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > body->end - body->begin)
        return CURL_SEEKFUNC_FAIL;
    body->pusher->sent -= body->offset - body->begin - (uint64_t)offset;
    body->offset = body->begin + (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t text_take(char *data, size_t size, size_t count, void *context)
{
    (void)buf_add(context, data, size * count); /* only the beginning is of interest */
    return size * count;
}

/* Returns whether a URL leads to the registry itself: only it gets the credentials. */
static bool url_is_own(const struct session *session, const char *url)
{
    static const CURLUPart parts[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };
    cleanup_with(curl_url_cleanup_slot) CURLU *own = curl_url(), *other = curl_url();

    if (!own || !other || curl_url_set(own, CURLUPART_URL, session->endpoint.url, 0) != CURLUE_OK ||
        curl_url_set(other, CURLUPART_URL, url, 0) != CURLUE_OK)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        cleanup_with(curl_free_slot) char *one = NULL, *two = NULL;

        if (curl_url_get(own, parts[i], &one, CURLU_DEFAULT_PORT) != CURLUE_OK ||
            curl_url_get(other, parts[i], &two, CURLU_DEFAULT_PORT) != CURLUE_OK ||
            strcasecmp(one, two) != 0)
            return false;
    }
    return true;
}

/* Makes an absolute URL of the header Location. */
static void location_take(struct pusher *pusher, struct reply *reply)
{
    cleanup_with(curl_url_cleanup_slot) CURLU *url = curl_url();
    cleanup_with(curl_free_slot) char *text = NULL;
    struct curl_header *header = NULL;
    char *base = NULL;

    reply->location[0] = '\0';
    (void)curl_easy_getinfo(pusher->easy, CURLINFO_EFFECTIVE_URL, &base);
    if (!url || !base ||
        curl_easy_header(pusher->easy, "Location", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        curl_url_set(url, CURLUPART_URL, base, 0) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_URL, header->value, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &text, 0) != CURLUE_OK || strlen(text) >= URL_MAX)
        return;
    (void)snprintf(reply->location, sizeof(reply->location), "%s", text);
}

/* "0-99" means that 100 bytes were received; a registry without any sends "0-0" or nothing. */
static void range_take(struct pusher *pusher, struct reply *reply)
{
    struct curl_header *header = NULL;
    const char *text;
    uint64_t last = 0;

    reply->received = 0;
    if (curl_easy_header(pusher->easy, "Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return;
    text = strncmp(header->value, "bytes=", 6) == 0 ? header->value + 6 : header->value;
    if (strncmp(text, "0-", 2) == 0 && parse_u64(text + 2, &last) == 0 && last > 0 &&
        last < UINT64_MAX)
        reply->received = last + 1;
}

static void body_set(CURL *easy, const struct request *request, struct curl_slist **headers)
{
    struct body *body = request->body;
    char header[128];

    (void)snprintf(header, sizeof(header), "Content-Type: %s", request->type);
    *headers = curl_slist_append(*headers, header);
    if (body->begin > 0) {
        (void)snprintf(header, sizeof(header), "Content-Range: %" PRIu64 "-%" PRIu64, body->begin,
                       body->end - 1);
        *headers = curl_slist_append(*headers, header);
    }
    *headers = curl_slist_append(*headers, "Expect:");
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, body_read);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, body);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, body_seek);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, body);
    (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(body->end - body->begin));
}

static void request_once(struct pusher *pusher, const struct request *request, struct reply *reply)
{
    cleanup_with(curl_slist_free_all_slot) struct curl_slist *headers = NULL;
    struct session *session = pusher->session;
    char kept[TOKEN_MAX];
    CURL *easy = pusher->easy;
    bool is_own = url_is_own(session, request->url);

    buf_clear(&reply->text);
    curl_easy_reset(easy);
    session->refused_address[0] = session->detail[0] = '\0';
    memcpy(kept, session->authorization, sizeof(kept));
    if (!is_own)
        session->authorization[0] = '\0';
    session_prepare(session, easy, request->url, "*/*", &headers);
    memcpy(session->authorization, kept, sizeof(kept));
    if (request->body)
        body_set(easy, request, &headers);
    else if (strcmp(request->method, "POST") == 0)
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
    if (strcmp(request->method, "HEAD") == 0)
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    /* On a connection that was used before, libcurl would send a body that was cut once more, after
     * the bytes that the registry has. */
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->body != NULL ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SETTLE_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, text_take);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply->text);
    reply->code = curl_easy_perform(easy);
    reply->status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply->status);
    location_take(pusher, reply);
    range_take(pusher, reply);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
}

static bool status_is_final(const struct reply *reply)
{
    return reply->code == CURLE_OK && reply->status >= 200 && reply->status < 500 &&
           reply->status != 401 && reply->status != 429;
}

/* Asks once, and again after a login. Returns 0 with any reply, or fails if the login does. */
static int request_login(struct pusher *pusher, const struct request *request, struct reply *reply,
                         struct err *err)
{
    for (unsigned logins = 0;; logins++) {
        if (request->body)
            (void)body_seek(request->body, 0, SEEK_SET);
        request_once(pusher, request, reply);
        if (reply->code != CURLE_OK || reply->status != 401 || logins == LOGINS_MAX)
            return 0;
        if (session_authorize(pusher->session, pusher->easy, err) < 0)
            return err_wrap(err, "log in");
    }
}

/* The first message of the registry's list of errors. */
static void reason_find(const struct reply *reply, char ret[static 160])
{
    cleanup_json json_t *object = NULL;
    const json_t *first;
    const char *message = NULL, *code;
    struct err ignored;

    ret[0] = '\0';
    if (reply->text.data &&
        json_parse_object(reply->text.data, reply->text.len, &object, &ignored) == 0) {
        first = json_array_get(json_object_get(object, "errors"), 0);
        message = json_string_value(json_object_get(first, "message"));
        code = json_string_value(json_object_get(first, "code"));
        message = message && *message ? message : code;
    }
    if (message)
        (void)snprintf(ret, 160, ": %.150s", message);
    for (char *c = ret; *c; c++)
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
}

static int explain(struct pusher *pusher, const struct reply *reply, struct err *err)
{
    const char *url = pusher->session->endpoint.url;
    char reason[160];

    reason_find(reply, reason);
    if (reply->code == CURLE_OK && reply->status == 413)
        return err_set(err, ERR_EXHAUSTED, "%s takes no blobs of this size (HTTP 413)%s", url,
                       reason);
    if (reply->code == CURLE_OK && reply->status == 405)
        return err_set(err, ERR_UNSUPPORTED, "%s is read-only (HTTP 405)%s", url, reason);
    if (reply->code == CURLE_OK && reply->status == 404)
        return err_set(err, ERR_NOT_FOUND, "%s has no repository '%s' (HTTP 404)%s", url,
                       pusher->session->repository, reason);
    if (reply->code == CURLE_OK && reply->status >= 400 && reply->status < 500 &&
        reply->status != 401 && reply->status != 403 && reply->status != 429)
        return err_set(err, ERR_INVALID, "%s refuses the image (HTTP %ld)%s", url, reply->status,
                       reason);
    return session_explain(pusher->session, reply->code, reply->status, err);
}

/* Asks until there is a reply that another try would not change. */
static int request_do(struct pusher *pusher, const struct request *request, struct reply *reply,
                      struct err *err)
{
    for (unsigned tries = 0;; tries++) {
        int r = request_login(pusher, request, reply, err);
        unsigned pause_ms;

        if (r < 0 || status_is_final(reply))
            return r;
        pause_ms =
            session_pause_ms(pusher->session, pusher->easy, reply->code, reply->status, tries);
        if (pause_ms == 0)
            return explain(pusher, reply, err);
        clock_sleep_ms(pause_ms);
    }
}

/* --- blobs ------------------------------------------------------------------------------------ */

/* Returns 1 if the registry has the blob. */
static int blob_find(struct pusher *pusher, const struct push_blob *blob, struct reply *reply,
                     struct err *err)
{
    char url[URL_MAX];
    int r;

    (void)snprintf(url, sizeof(url), "%s/v2/%s/blobs/%s", pusher->session->endpoint.url,
                   pusher->session->repository, blob->digest);
    r = request_do(pusher, &(struct request){ .method = "HEAD", .url = url }, reply, err);
    if (r < 0)
        return r;
    if (reply->status == 403)
        return explain(pusher, reply, err);
    return reply->status == 200;
}

/* Begins an upload, or has the registry take the blob from another of its repositories. Returns 1
 * if it did. */
static int upload_begin(struct pusher *pusher, const struct push_blob *blob, struct reply *reply,
                        struct err *err)
{
    char url[URL_MAX];
    int r, len = snprintf(url, sizeof(url), "%s/v2/%s/blobs/uploads/",
                          pusher->session->endpoint.url, pusher->session->repository);

    if (*blob->from)
        (void)snprintf(url + len, sizeof(url) - (size_t)len, "?mount=%s&from=%s", blob->digest,
                       blob->from);
    r = request_do(pusher, &(struct request){ .method = "POST", .url = url }, reply, err);
    if (r < 0)
        return r;
    if (reply->status == 201)
        return 1;
    if (reply->status != 202)
        return explain(pusher, reply, err);
    if (!reply->location[0])
        return err_set(err, ERR_INVALID, "%s gives no address for the upload",
                       pusher->session->endpoint.url);
    return 0;
}

/* Finds out how much of an upload has arrived. Returns 0, or -ESTALE if it must be begun again. */
static int upload_find(struct pusher *pusher, char url[static URL_MAX], struct body *body,
                       struct reply *reply, struct err *err)
{
    int r = request_do(pusher, &(struct request){ .method = "GET", .url = url }, reply, err);

    if (r < 0)
        return r;
    if (reply->status != 204 || reply->received > body->end)
        return -ESTALE;
    if (reply->location[0])
        memcpy(url, reply->location, URL_MAX);
    body->pusher->sent = body->pusher->sent - (body->offset - body->begin);
    body->begin = body->offset = reply->received;
    return 0;
}

/* Sends the bytes of a blob to the address in `url`, which becomes the one to end the upload. */
static int upload_send(struct pusher *pusher, char url[static URL_MAX], struct body *body,
                       struct reply *reply, struct err *err)
{
    const struct request request = {
        .method = "PATCH", .url = url, .type = "application/octet-stream", .body = body
    };

    for (unsigned tries = 0;; tries++) {
        int r = request_login(pusher, &request, reply, err);
        unsigned pause_ms;

        if (r < 0)
            return r;
        if (reply->code == CURLE_OK && (reply->status == 202 || reply->status == 204)) {
            if (reply->location[0])
                memcpy(url, reply->location, URL_MAX);
            return 0;
        }
        if (reply->code == CURLE_OK && (reply->status == 404 || reply->status == 416))
            return -ESTALE;
        pause_ms =
            session_pause_ms(pusher->session, pusher->easy, reply->code, reply->status, tries);
        if (pause_ms == 0)
            return explain(pusher, reply, err);
        clock_sleep_ms(pause_ms);
        r = upload_find(pusher, url, body, reply, err);
        if (r < 0)
            return r;
    }
}

static int upload_end(struct pusher *pusher, const char *url, const struct push_blob *blob,
                      struct reply *reply, struct err *err)
{
    struct body nothing = { .pusher = pusher, .fd = -1 };
    char full[URL_MAX + IMAGE_DIGEST_LEN + 16];
    int r;

    (void)snprintf(full, sizeof(full), "%s%sdigest=%s", url, strchr(url, '?') ? "&" : "?",
                   blob->digest);
    r = request_do(
        pusher,
        &(struct request){
            .method = "PUT", .url = full, .type = "application/octet-stream", .body = &nothing },
        reply, err);
    if (r < 0)
        return r;
    if (reply->status == 404)
        return -ESTALE;
    return reply->status == 201 || reply->status == 204 ? 0 : explain(pusher, reply, err);
}

/* Sends a blob unless the registry has it. Returns -ESTALE, without an error, if the registry has
 * forgotten the upload. */
static int blob_send(struct pusher *pusher, const struct push_blob *blob, struct reply *reply,
                     struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct body body = { .pusher = pusher, .end = blob->size };
    char url[URL_MAX];
    int r = blob_find(pusher, blob, reply, err);

    if (r == 0)
        r = upload_begin(pusher, blob, reply, err);
    if (r != 0) {
        pusher->sent += r > 0 ? blob->size : 0;
        return r < 0 ? r : 0;
    }
    memcpy(url, reply->location, sizeof(url));
    body.fd = fd = talk_send_of(blob->digest);
    if (fd < 0)
        return err_set(err, ERR_INTERNAL, "holtd has no such blob");
    r = upload_send(pusher, url, &body, reply, err);
    return r < 0 ? r : upload_end(pusher, url, blob, reply, err);
}

static int blob_push(struct pusher *pusher, const struct push_blob *blob, struct reply *reply,
                     struct err *err)
{
    uint64_t before = pusher->sent;

    for (int i = 0; i < RESTARTS_MAX; i++) {
        int r;

        pusher->sent = before;
        r = blob_send(pusher, blob, reply, err);
        if (r != -ESTALE)
            return r < 0 ? err_wrap(err, "blob %.19s", blob->digest) : 0;
    }
    return err_set(err, ERR_UNAVAILABLE, "%s forgets uploads of blob %.19s",
                   pusher->session->endpoint.url, blob->digest);
}

static int manifest_push(struct pusher *pusher, struct reply *reply, struct err *err)
{
    const struct push *push = pusher->push;
    cleanup_close int fd = talk_send_of(push->manifest.digest);
    struct body body = { .pusher = pusher, .fd = fd, .end = push->manifest.size };
    char url[URL_MAX];
    int r;

    if (fd < 0)
        return err_set(err, ERR_INTERNAL, "holtd has no manifest");
    (void)snprintf(url, sizeof(url), "%s/v2/%s/manifests/%s", pusher->session->endpoint.url,
                   pusher->session->repository, push->reference);
    r = request_do(
        pusher, &(struct request){ .method = "PUT", .url = url, .type = push->type, .body = &body },
        reply, err);
    if (r < 0)
        return r;
    return reply->status == 201 ? 0 : explain(pusher, reply, err);
}

int push_image(const struct push *push, struct err *err)
{
    cleanup_with(curl_easy_cleanup_slot) CURL *easy = curl_easy_init();
    struct pusher pusher = { .push = push, .session = push->session, .easy = easy };
    struct reply reply = { .text = BUF_INIT(REPLY_MAX) };
    int r = easy ? 0 : err_sys(err, -ENOMEM, "make a request");

    for (size_t i = 0; i < push->count; i++)
        pusher.total += push->blobs[i].size;
    for (size_t i = 0; r == 0 && i < push->count; i++)
        r = blob_push(&pusher, &push->blobs[i], &reply, err);
    if (r == 0)
        r = manifest_push(&pusher, &reply, err);
    buf_done(&reply.text);
    return r;
}
