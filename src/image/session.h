/* A conversation with one registry over HTTP: credentials, tokens, retries, bounds. All that a
 * registry sends is hostile. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/image_ref.h"

struct buf;
struct err;

enum { ENDPOINTS_MAX = 8, URL_MAX = 2048, TOKEN_MAX = 16 * 1024 };

struct endpoint {
    char url[512]; /* without a slash at its end */
    bool is_mirror;
    bool is_insecure; /* http and unknown certificates are allowed */
    bool is_private;  /* addresses that are not public are allowed */
};

struct session {
    struct endpoint endpoint;
    char repository[IMAGE_REF_MAX + 1]; /* "": a login is checked */
    const char *user, *password;        /* "": none */
    char authorization[TOKEN_MAX];      /* value of the header; "": none */
    char refused_address[64];           /* that was not dialled */
    char detail[CURL_ERROR_SIZE];       /* of the last failure */
};

/* Prepares a handle for a GET of url with the session's rules; Authorization is sent to the host
 * of the URL only. The caller frees *ret_headers after the handle. */
void session_prepare(struct session *session, CURL *easy, const char *url, const char *accept,
                     struct curl_slist **ret_headers);

/* Gets a small document, with a token if the registry asks for one, and again after failures that
 * may pass. Fails with an error in the user's terms. */
int session_get(struct session *session, const char *url, const char *accept, struct buf *body,
                struct err *err);

/* Obtains what the reply 401 on a handle asks for. */
int session_authorize(struct session *session, CURL *easy, struct err *err);

/* Returns how long to wait before another try after `tries` failures: Retry-After of the reply, or
 * a time that doubles; 0 if another try is useless. */
unsigned session_pause_ms(const struct session *session, CURL *easy, CURLcode code, long status,
                          unsigned tries);

/* Sets the error for a reply or a failed transfer. Returns like err_set. */
int session_explain(struct session *session, CURLcode code, long status, struct err *err);
