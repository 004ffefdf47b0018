// SPDX-License-Identifier: Apache-2.0
#include "image/session.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/text/parse.h"
#include "image/challenge.h"
#include "net/address.h"

enum {
    REDIRECTS_MAX = 5,
    CONNECT_SECONDS = 15,
    STALL_SECONDS = 60,
    TRIES_MAX = 4,
    PAUSE_FIRST_MS = 250,
    RETRY_AFTER_MAX_SECONDS = 10,
    TOKEN_REPLY_MAX = 64 * 1024,
};

DEFINE_CLEANUP(curl_easy_cleanup, CURL *);
DEFINE_CLEANUP(curl_slist_free_all, struct curl_slist *);
DEFINE_CLEANUP(curl_free, char *);

/* Called for every connection, also those of redirects: the last place where a name of a registry
 * can turn out to be an address inside of the operator's network. */
static curl_socket_t socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct session *session = context;
    struct net_address target = net_address_of(&address->addr);
    const char *reason = "";

    (void)purpose;
    if (target.family == AF_UNSPEC)
        return CURL_SOCKET_BAD;
    if (!session->endpoint.is_private && net_address_class(&target, &reason) != NET_PUBLIC) {
        (void)inet_ntop(target.family, target.bytes, session->refused_address,
                        sizeof(session->refused_address));
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void session_prepare(struct session *session, CURL *easy, const char *url, const char *accept,
                     struct curl_slist **ret_headers)
{
    const char *protocols = session->endpoint.is_insecure ? "http,https" : "https";
    char header[TOKEN_MAX + sizeof("Authorization: ")];
    struct curl_slist *headers = NULL;

    (void)snprintf(header, sizeof(header), "Accept: %s", accept);
    headers = curl_slist_append(headers, header);
    if (session->authorization[0]) {
        (void)snprintf(header, sizeof(header), "Authorization: %s", session->authorization);
        headers = curl_slist_append(headers, header);
    }
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, protocols);
    (void)curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    (void)curl_easy_setopt(easy, CURLOPT_UNRESTRICTED_AUTH, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "holt/" HOLT_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, session->detail);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, session);
    if (session->endpoint.is_insecure) {
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    *ret_headers = headers;
}

static size_t body_take(char *data, size_t size, size_t count, void *context)
{
    struct buf *body = context;

    return buf_add(body, data, size * count) < 0 ? 0 : size * count;
}

/* One GET. Returns what curl returned; *ret_status is 0 without a reply. */
static CURLcode get_once(struct session *session, CURL *easy, const char *url, const char *accept,
                         struct buf *body, long *ret_status)
{
    cleanup_with(curl_slist_free_all_slot) struct curl_slist *headers = NULL;
    CURLcode code;

    buf_clear(body);
    curl_easy_reset(easy);
    session->refused_address[0] = session->detail[0] = '\0';
    session_prepare(session, easy, url, accept, &headers);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    code = curl_easy_perform(easy);
    *ret_status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, ret_status);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    return code;
}

static unsigned retry_after_seconds(CURL *easy)
{
    struct curl_header *header = NULL;
    uint64_t seconds = 0;

    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        parse_u64(header->value, &seconds) < 0)
        return 0;
    return seconds > RETRY_AFTER_MAX_SECONDS ? UINT32_MAX : (unsigned)seconds;
}

unsigned session_pause_ms(const struct session *session, CURL *easy, CURLcode code, long status,
                          unsigned tries)
{
    bool may_pass = code == CURLE_OK ? status == 429 || status >= 500
                                     : code != CURLE_WRITE_ERROR && code != CURLE_URL_MALFORMAT &&
                                           code != CURLE_PEER_FAILED_VERIFICATION &&
                                           code != CURLE_TOO_MANY_REDIRECTS &&
                                           code != CURLE_UNSUPPORTED_PROTOCOL &&
                                           code != CURLE_COULDNT_RESOLVE_HOST;
    unsigned seconds = code == CURLE_OK ? retry_after_seconds(easy) : 0;

    if (!may_pass || session->refused_address[0] || tries >= TRIES_MAX || seconds == UINT32_MAX)
        return 0;
    return seconds > 0 ? seconds * 1000 : (unsigned)PAUSE_FIRST_MS << tries;
}

static int login_explain(const struct session *session, long status, struct err *err)
{
    if (status == 401 || status == 403)
        return err_set(err, ERR_DENIED, "%s refuses the login of '%.80s' (HTTP %ld)",
                       session->endpoint.url, session->user, status);
    return err_set(err, ERR_INVALID, "%s is not a registry (HTTP %ld for /v2/)",
                   session->endpoint.url, status);
}

int session_explain(struct session *session, CURLcode code, long status, struct err *err)
{
    const char *url = session->endpoint.url;

    if (code == CURLE_OK && !session->repository[0] && status >= 400 && status < 500 &&
        status != 429)
        return login_explain(session, status, err);
    if (code == CURLE_OK && status == 404)
        return err_set(err, ERR_NOT_FOUND, "%s has no such image", url);
    if (code == CURLE_OK && (status == 401 || status == 403))
        return err_set(err, ERR_DENIED, "%s refuses access to '%s' (HTTP %ld): %s", url,
                       session->repository, status,
                       *session->user ? "check the credentials"
                                      : "it does not exist, or needs a login");
    if (code == CURLE_OK && status == 429)
        return err_set(err, ERR_EXHAUSTED,
                       "%s: rate limit reached (HTTP 429): wait, log in, or use a mirror", url);
    if (code == CURLE_OK)
        return err_set(err, ERR_UNAVAILABLE, "%s answered with HTTP %ld", url, status);
    if (session->refused_address[0])
        return err_set(err, ERR_DENIED,
                       "%s leads to %s, which is no public address: list the registry in "
                       "image.insecure or image.mirrors of holt.conf",
                       url, session->refused_address);
    return err_set(err, ERR_UNAVAILABLE, "%s: %.120s", url,
                   session->detail[0] ? session->detail : curl_easy_strerror(code));
}

/* --- tokens ----------------------------------------------------------------------------------- */

static int basic_set(struct session *session, struct err *err)
{
    cleanup_with(buf_done) struct buf plain = BUF_INIT(TOKEN_MAX / 2);
    cleanup_with(buf_done) struct buf text = BUF_INIT(TOKEN_MAX - 16);

    if (buf_printf(&plain, "%s:%s", session->user, session->password) < 0 ||
        base64_encode(&text, plain.data, plain.len) < 0)
        return err_set(err, ERR_INVALID, "the credentials are too long");
    (void)snprintf(session->authorization, sizeof(session->authorization), "Basic %s", text.data);
    return 0;
}

/* Appends NAME=VALUE to a query. */
static int query_add(struct buf *url, CURL *easy, const char *name, const char *value)
{
    cleanup_with(curl_free_slot) char *escaped = curl_easy_escape(easy, value, 0);

    if (*value == '\0')
        return 0;
    return buf_printf(url, "%s%s=%s", strchr(url->data, '?') ? "&" : "?", name,
                      escaped ? escaped : "");
}

static int token_take(struct session *session, const struct buf *body, struct err *err)
{
    cleanup_json json_t *object = NULL;
    const char *token = NULL, *access = NULL;

    if (json_parse_object(body->data ? body->data : "", body->len, &object, err) < 0 ||
        json_get_text(object, "token", &token, err) < 0 ||
        json_get_text(object, "access_token", &access, err) < 0)
        return err_wrap(err, "the token of %s", session->endpoint.url);
    token = token && *token ? token : access;
    if (!token || strpbrk(token, "\r\n") ||
        snprintf(session->authorization, sizeof(session->authorization), "Bearer %s", token) >=
            (int)sizeof(session->authorization)) {
        session->authorization[0] = '\0';
        return err_set(err, ERR_INVALID, "%s sent no usable token", session->endpoint.url);
    }
    return 0;
}

/* Asks the realm, which the registry names, for a token. The credentials go there: that is what a
 * login to the registry means. */
static int token_get(struct session *session, const struct challenge *challenge, struct err *err)
{
    cleanup_with(curl_easy_cleanup_slot) CURL *easy = curl_easy_init();
    cleanup_with(buf_done) struct buf url = BUF_INIT(URL_MAX), body = BUF_INIT(TOKEN_REPLY_MAX);
    char scope[IMAGE_REF_MAX + 32] = "";
    long status = 0;
    CURLcode code;
    int r = 0;

    if (session->repository[0])
        (void)snprintf(scope, sizeof(scope), "repository:%s:pull", session->repository);
    session->authorization[0] = '\0';
    if (*session->user)
        r = basic_set(session, err);
    if (r < 0)
        return r;
    if (!easy || buf_printf(&url, "%s", challenge->realm) < 0 ||
        query_add(&url, easy, "service", challenge->service) < 0 ||
        query_add(&url, easy, "scope", challenge->scope[0] ? challenge->scope : scope) < 0)
        return err_set(err, ERR_INVALID, "%s wants a token from an absurd address",
                       session->endpoint.url);
    code = get_once(session, easy, url.data, "application/json", &body, &status);
    session->authorization[0] = '\0';
    if (code != CURLE_OK || status != 200)
        return session_explain(session, code, status, err);
    return token_take(session, &body, err);
}

int session_authorize(struct session *session, CURL *easy, struct err *err)
{
    struct challenge challenge;
    struct curl_header *header = NULL;

    if (curl_easy_header(easy, "WWW-Authenticate", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        !challenge_parse(header->value, &challenge))
        return err_set(err, ERR_DENIED, "%s wants a login of a kind that Holt does not know",
                       session->endpoint.url);
    if (challenge.is_bearer)
        return token_get(session, &challenge, err);
    if (!*session->user)
        return session_explain(session, CURLE_OK, 401, err);
    return basic_set(session, err);
}

/* --- documents -------------------------------------------------------------------------------- */

int session_get(struct session *session, const char *url, const char *accept, struct buf *body,
                struct err *err)
{
    cleanup_with(curl_easy_cleanup_slot) CURL *easy = curl_easy_init();
    bool has_asked = false;

    for (unsigned tries = 0; easy; tries++) {
        long status = 0;
        CURLcode code = get_once(session, easy, url, accept, body, &status);
        unsigned pause_ms;

        if (code == CURLE_OK && status == 200)
            return 0;
        if (code == CURLE_WRITE_ERROR)
            return err_set(err, ERR_EXHAUSTED, "%s sent a document of more than %zu bytes",
                           session->endpoint.url, body->max);
        if (code == CURLE_OK && status == 401 && !has_asked) {
            has_asked = true;
            if (session_authorize(session, easy, err) < 0)
                return err_wrap(err, "log in");
            continue;
        }
        pause_ms = session_pause_ms(session, easy, code, status, tries);
        if (pause_ms == 0)
            return session_explain(session, code, status, err);
        clock_sleep_ms(pause_ms);
    }
    return err_sys(err, -ENOMEM, "make a request");
}
