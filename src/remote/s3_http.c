// SPDX-License-Identifier: Apache-2.0
/* Requests of the S3 backend: libcurl, a connection for each thread at work, which the next one
 * takes over. Redirects are not followed and no proxy is asked, so credentials reach the endpoint
 * alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text/parse.h"
#include "remote/s3_internal.h"
#include "remote/s3_key.h"

enum {
    TRIES_MAX = 6,
    PAUSE_FIRST_MS = 100,
    PAUSE_MAX_MS = 20 * 1000,
    CONNECT_MAX_MS = 10 * 1000,
    BYTES_PER_SECOND_MIN = 1000, /* fewer are silence */
    TRANSFER_BUFFER = 256 * 1024,
    REPLY_HEADERS_MAX = 128 * 1024,
    REPLY_ERROR_MAX = 64 * 1024,
    HEADER_MAX = S3_KEY_FILE_MAX + 1024,
    URL_MAX_BYTES = 16 * 1024,
};

DEFINE_CLEANUP(curl_slist_free_all, struct curl_slist *);

/* A call with its present try. */
struct transfer {
    struct s3 *s3;
    const struct s3_call *call;
    CURL *easy;
    size_t sent;         /* of the data */
    size_t header_bytes; /* received */
    size_t into_len;     /* of call->into before the first try */
    unsigned requests;   /* sent, also by libcurl in one try */
    bool is_too_large;   /* the body of a success */
    bool has_no_length;  /* nobody can say whether that body is whole */
    struct buf error;    /* body of anything else */
    char detail[CURL_ERROR_SIZE];
};

/* --- connections ------------------------------------------------------------------------------ */

static CURL *connection_take(struct s3 *s3)
{
    {
        lock_scope(&s3->lock);
        if (s3->idle_count > 0)
            return s3->idle[--s3->idle_count];
    }
    return curl_easy_init();
}

static void connection_give(struct s3 *s3, CURL *easy)
{
    /* What the handle points to is gone when the next call takes it; the connection is kept. */
    curl_easy_reset(easy);
    {
        lock_scope(&s3->lock);
        if (s3->idle_count < S3_IDLE_MAX) {
            s3->idle[s3->idle_count++] = easy;
            return;
        }
    }
    curl_easy_cleanup(easy);
}

void s3_connections_close(struct s3 *s3)
{
    while (s3->idle_count > 0)
        curl_easy_cleanup(s3->idle[--s3->idle_count]);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static size_t data_send(char *to, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const char *data = transfer->call->data;
    size_t len = transfer->call->len - transfer->sent;

    if (len > size * count)
        len = size * count;
    if (len > 0)
        memcpy(to, data + transfer->sent, len);
    transfer->sent += len;
    return len;
}

static int data_seek(void *context, curl_off_t offset, int origin)
{
    struct transfer *transfer = context;

    if (origin != SEEK_SET || offset < 0 || (size_t)offset > transfer->call->len)
        return CURL_SEEKFUNC_FAIL;
    transfer->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* libcurl sends a request again, without a word, if a kept connection turns out to be closed. */
static int request_count(void *context, char *to, char *from, int to_port, int from_port)
{
    struct transfer *transfer = context;

    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    transfer->requests++;
    return CURL_PREREQFUNC_OK;
}

static size_t header_take(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    (void)data;
    transfer->header_bytes += size * count;
    return transfer->header_bytes > REPLY_HEADERS_MAX ? 0 : size * count;
}

static bool status_is_success(long status)
{
    return status >= 200 && status < 300;
}

static size_t error_take(struct transfer *transfer, const char *data, size_t len)
{
    return buf_add(&transfer->error, data, len) < 0 ? 0 : len;
}

static size_t body_take(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct buf *into = transfer->call->into;
    curl_off_t announced = -1;
    size_t len = size * count, had;
    long status = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!status_is_success(status) || !into)
        return error_take(transfer, data, len);
    had = into->len - transfer->into_len;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    if (had == 0 && announced > 0 && (uint64_t)announced <= transfer->call->into_max)
        transfer->is_too_large = buf_reserve(into, (size_t)announced) < 0;
    if (transfer->is_too_large || announced > (curl_off_t)transfer->call->into_max ||
        len > transfer->call->into_max - had || buf_add(into, data, len) < 0) {
        transfer->is_too_large = true;
        return 0;
    }
    return len;
}

/* Drops what a try has got. */
static void into_reset(struct transfer *transfer)
{
    struct buf *into = transfer->call->into;

    if (into && into->data) {
        into->len = transfer->into_len;
        into->data[into->len] = '\0';
    }
}

/* --- one try ---------------------------------------------------------------------------------- */

static int header_add(struct curl_slist **headers, const char *name, const char *value)
{
    char line[HEADER_MAX];
    struct curl_slist *longer;

    if (snprintf(line, sizeof(line), "%s: %s", name, value) >= (int)sizeof(line))
        return -ENOBUFS;
    longer = curl_slist_append(*headers, line);
    if (!longer)
        return -ENOMEM;
    *headers = longer;
    return 0;
}

/* Signs the request of this moment and makes its headers. */
static int headers_make(const struct s3 *s3, const struct s3_call *call, const char *hash,
                        const struct s3_key *key, struct curl_slist **ret)
{
    cleanup_with(buf_done) struct buf authorization = BUF_INIT(HEADER_MAX);
    char date[SIGV4_DATE_SIZE] = "";
    const struct sigv4_request request = {
        .method = call->method,
        .host = s3->host,
        .path = call->path,
        .query = call->query,
        .query_count = call->query_count,
        .headers = call->header,
        .header_count = call->header ? 1 : 0,
        .payload_hash = hash,
        .time_s = clock_wall_ms() / 1000,
        .region = s3->region,
        .service = "s3",
        .access_key = key->access,
        .secret_key = key->secret,
        .session_token = key->token,
    };
    int r = sigv4_sign(&request, date, &authorization);

    const struct sigv4_pair headers[] = {
        { "Host", s3->host },
        { "Authorization", authorization.data },
        { "x-amz-date", date },
        { "x-amz-content-sha256", hash },
        { "x-amz-security-token", key->token },
    };
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(headers); i++) {
        if (*headers[i].value)
            r = header_add(ret, headers[i].name, headers[i].value);
    }
    if (r == 0 && call->header)
        r = header_add(ret, call->header->name, call->header->value);
    /* Without it libcurl waits up to a second for the permission to send a body. */
    return r < 0 ? r : header_add(ret, "Expect", "");
}

static int url_make(const struct s3 *s3, const struct s3_call *call, struct buf *ret)
{
    int r = buf_printf(ret, "%s%s%s", s3->endpoint, call->path, call->query_count ? "?" : "");

    return r < 0 ? r : sigv4_query_add(ret, call->query, call->query_count);
}

static void method_set(CURL *easy, struct transfer *transfer)
{
    const struct s3_call *call = transfer->call;

    if (strcmp(call->method, "PUT") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->len);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, data_send);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, data_seek);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
    } else if (strcmp(call->method, "HEAD") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    }
}

static void options_set(const struct s3 *s3, CURL *easy, struct transfer *transfer)
{
    unsigned connect_ms = s3->timeout_ms < CONNECT_MAX_MS ? s3->timeout_ms : CONNECT_MAX_MS;

    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)BYTES_PER_SECOND_MIN);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)(s3->timeout_ms + 999) / 1000);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)TRANSFER_BUFFER);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)TRANSFER_BUFFER);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "holt/" HOLT_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->detail);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request_count);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_take);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
}

static const char *header_of(CURL *easy, const char *name)
{
    struct curl_header *header = NULL;

    return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value
                                                                                   : NULL;
}

static void reply_take(struct transfer *transfer, struct s3_reply *ret)
{
    const char *date = header_of(transfer->easy, "Date");
    const char *region = header_of(transfer->easy, "x-amz-bucket-region");
    curl_off_t length = -1;
    time_t date_s = date ? curl_getdate(date, NULL) : -1;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &ret->status);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    ret->length = length < 0 ? UINT64_MAX : (uint64_t)length;
    ret->has_etag = header_of(transfer->easy, "ETag") != NULL;
    ret->date_s = date_s > 0 ? date_s : 0;
    ret->code[0] = ret->message[0] = '\0';
    (void)snprintf(ret->region, sizeof(ret->region), "%s", region ? region : "");
    if (!status_is_success(ret->status))
        s3_reply_read(ret, &transfer->error);
}

/* Makes a try. Returns what curl returned; without a whole reply, ret->status is 0. */
static CURLcode transfer_run(struct transfer *transfer, const char *url, struct curl_slist *headers,
                             struct s3_reply *ret)
{
    CURL *easy = transfer->easy;
    CURLcode code;

    transfer->sent = transfer->header_bytes = 0;
    transfer->detail[0] = '\0';
    buf_clear(&transfer->error);
    into_reset(transfer);
    options_set(transfer->s3, easy, transfer);
    method_set(easy, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    code = curl_easy_perform(easy);
    reply_take(transfer, ret);
    /* A body that nobody wants may have no end. */
    if (code == CURLE_WRITE_ERROR && transfer->header_bytes <= REPLY_HEADERS_MAX &&
        (!status_is_success(ret->status) || !transfer->call->into))
        code = CURLE_OK;
    if (code == CURLE_OK && transfer->call->is_object && status_is_success(ret->status) &&
        ret->length == UINT64_MAX) {
        transfer->has_no_length = true;
        code = CURLE_BAD_CONTENT_ENCODING;
    }
    if (code != CURLE_OK)
        ret->status = 0;
    return code;
}

/* --- all tries -------------------------------------------------------------------------------- */

static bool failure_may_pass(CURLcode code)
{
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
        return true;
    default:
        return false;
    }
}

/* Returns the time to wait before the next try: what the server wants, or one that doubles, with
 * a random half, so that clients that failed together do not come back together. */
static unsigned pause_ms(CURL *easy, unsigned tries)
{
    const char *text = header_of(easy, "Retry-After");
    unsigned ms = (unsigned)PAUSE_FIRST_MS << tries;
    uint64_t seconds = 0;

    if (text && parse_u64(text, &seconds) == 0 && seconds > 0)
        ms = seconds > PAUSE_MAX_MS / 1000 ? PAUSE_MAX_MS : (unsigned)seconds * 1000;
    else
        ms = ms / 2 + (unsigned)(random_u64() % (ms / 2));
    return ms;
}

static int failure_explain(const struct transfer *transfer, CURLcode code, struct err *err)
{
    const char *detail = transfer->detail[0] ? transfer->detail : curl_easy_strerror(code);
    const char *where = transfer->s3->remote.where;

    if (transfer->is_too_large)
        return err_set(err, ERR_EXHAUSTED, "%.80s sent too many bytes", where);
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        (void)err_set(err, ERR_DENIED, "%.80s: %.100s", where, detail);
        return err_remedy(err, "add the certificate authority to those of this machine "
                               "(update-ca-certificates)");
    }
    if (transfer->has_no_length)
        return err_set(err, ERR_INVALID, "%.80s sent it without its length", where);
    return err_set(err, ERR_UNAVAILABLE, "%.80s: %.100s", where, detail);
}

/* Makes a try with the credentials of this moment. Returns 0 and what curl returned. */
static int call_try(struct transfer *transfer, const char *url, const char *hash,
                    struct s3_reply *ret, CURLcode *ret_code, struct err *err)
{
    cleanup_with(curl_slist_free_all_slot) struct curl_slist *headers = NULL;
    cleanup_with(s3_key_done) struct s3_key key;
    int r = s3_key_read(transfer->s3->key_file, &key, err);

    if (r < 0)
        return r;
    r = headers_make(transfer->s3, transfer->call, hash, &key, &headers);
    if (r < 0)
        return err_sys(err, r, "sign a request");
    *ret_code = transfer_run(transfer, url, headers, ret);
    return 0;
}

static bool try_is_last(const struct transfer *transfer, CURLcode code,
                        const struct s3_reply *reply, unsigned tries)
{
    if (tries == TRIES_MAX || transfer->is_too_large)
        return true;
    return code == CURLE_OK ? !s3_reply_may_pass(reply) : !failure_may_pass(code);
}

static void transfer_done(struct transfer *transfer)
{
    buf_done(&transfer->error);
    if (transfer->easy)
        connection_give(transfer->s3, transfer->easy);
}

int s3_send(struct s3 *s3, const struct s3_call *call, struct s3_reply *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf url = BUF_INIT(URL_MAX_BYTES);
    cleanup_with(transfer_done) struct transfer transfer = {
        .s3 = s3,
        .call = call,
        .easy = connection_take(s3),
        .into_len = call->into ? call->into->len : 0,
        .error = BUF_INIT(REPLY_ERROR_MAX),
    };
    int r = transfer.easy ? url_make(s3, call, &url) : -ENOMEM;
    char hash[SIGV4_HASH_SIZE];
    CURLcode code = CURLE_OK;

    *ret = (struct s3_reply){ .status = 0 };
    if (r < 0)
        return err_sys(err, r, "make a request");
    sigv4_hash(call->data, call->len, hash);
    for (unsigned tries = 1;; tries++) {
        r = call_try(&transfer, url.data, hash, ret, &code, err);
        if (r < 0 || try_is_last(&transfer, code, ret, tries))
            break;
        clock_sleep_ms(pause_ms(transfer.easy, tries - 1));
    }
    ret->is_again = transfer.requests > 1;
    if (r == 0 && code != CURLE_OK)
        r = failure_explain(&transfer, code, err);
    if (r < 0)
        into_reset(&transfer);
    return r;
}
