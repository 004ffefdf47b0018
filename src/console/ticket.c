// SPDX-License-Identifier: Apache-2.0
/* Tickets for downloads. A browser that saves a file sends a cookie, but no header of the page. So
 * the page first asks for a ticket, with both; it is good for one download by the same session. */
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plain/download.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "console/console_internal.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/session.h"

enum { TICKET_MS = 60 * 1000, TICKET_BYTES = 32 };

static const struct refusal refuse_ticket = {
    404,  ERR_NOT_FOUND, "the ticket is not valid: it can be used once, within a minute",
    NULL, NULL,          false,
};

static void ticket_clear(struct ticket *ticket)
{
    free(ticket->sandbox);
    free(ticket->path);
    *ticket = (struct ticket){ .sandbox = NULL };
}

void console_tickets_done(struct console *console)
{
    for (size_t i = 0; i < TICKETS_MAX; i++)
        ticket_clear(&console->tickets[i]);
}

/* Returns the ticket that ends first; one may be NULL. */
static struct ticket *ticket_older(struct ticket *one, struct ticket *other)
{
    return one && one->until_ms <= other->until_ms ? one : other;
}

/* Returns a place for a ticket: a free one, or that of the oldest ticket of a session or an owner
 * that has its share; NULL: others have them all. Needs the lock. */
static struct ticket *ticket_place(struct console *console, const struct caller *caller)
{
    uint64_t now = clock_ms();
    struct ticket *place = NULL, *of_session = NULL, *of_owner = NULL;
    size_t own = 0, owned = 0;

    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *ticket = &console->tickets[i];

        if (!ticket->sandbox || ticket->until_ms <= now) {
            place = ticket;
        } else if (strcmp(ticket->owner, caller->owner) == 0) {
            owned++;
            of_owner = ticket_older(of_owner, ticket);
            if (strcmp(ticket->session, caller->session) == 0) {
                own++;
                of_session = ticket_older(of_session, ticket);
            }
        }
    }
    if (own >= TICKETS_OF_SESSION_MAX)
        return of_session;
    return owned >= owner_share(caller->owner, TICKETS_MAX) ? of_owner : place;
}

static int ticket_create(struct console *console, const struct exchange *exchange,
                         const char *sandbox, const char *path, char ret[HEX_SIZE(TICKET_BYTES)],
                         struct err *err)
{
    int r = random_hex(ret, TICKET_BYTES);
    struct ticket *ticket;

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    lock_scope(&console->lock);
    ticket = ticket_place(console, &exchange->caller);
    if (!ticket)
        return err_set(err, ERR_EXHAUSTED, "too many downloads wait for their begin");
    ticket_clear(ticket);
    ticket->sandbox = xstrdup(sandbox);
    ticket->path = xstrdup(path);
    ticket->until_ms = clock_after_ms(TICKET_MS);
    (void)snprintf(ticket->session, sizeof(ticket->session), "%s", exchange->caller.session);
    (void)snprintf(ticket->owner, sizeof(ticket->owner), "%s", exchange->caller.owner);
    (void)SHA256((const unsigned char *)ret, strlen(ret), ticket->hash);
    return 0;
}

/* Reads {"sandbox": ..., "path": ...}; a path that is not UTF-8 is in rawPath. */
static int ticket_read(const struct exchange *exchange, json_t **ret, const char **ret_sandbox,
                       struct buf *path, struct err *err)
{
    static const char *const fields[] = { "sandbox", "path", "rawPath", NULL };
    const char *text = NULL;
    const struct buf *body = &exchange->body;
    int r = json_parse_object(body->data ? body->data : "", body->len, ret, err);

    if (r == 0)
        r = json_only_fields(*ret, fields, err);
    if (r == 0)
        r = json_get_text(*ret, "sandbox", ret_sandbox, err);
    if (r == 0)
        r = json_get_text(*ret, "path", &text, err);
    if (r == 0 && text && buf_add_str(path, text) < 0)
        r = err_set(err, ERR_INVALID, "field 'path' is too long");
    if (r == 0 && !text)
        r = json_get_bytes(*ret, "rawPath", path, err);
    if (r == 0 && path->len > 0 && memchr(path->data, '\0', path->len))
        r = err_set(err, ERR_INVALID, "field 'rawPath' has a NUL inside");
    if (r == 0 && (!*ret_sandbox || path->len == 0))
        r = err_set(err, ERR_INVALID, "a ticket needs a sandbox and a path");
    return r;
}

enum MHD_Result console_ticket(struct console *console, struct exchange *exchange)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(buf_done) struct buf out = BUF_INIT(CONSOLE_REPLY_MAX);
    cleanup_json json_t *request = NULL;
    cleanup_with(buf_done) struct buf path = BUF_INIT(PATH_MAX);
    const char *word = NULL;
    char ticket[HEX_SIZE(TICKET_BYTES)];
    struct err err = { 0 };
    int r = ticket_read(exchange, &request, &word, &path, &err);

    if (r == 0)
        r = sandbox_find(console->host, &exchange->caller, word, &sandbox, &err);
    if (r == 0)
        r = ticket_create(console, exchange, sandbox_id(sandbox), path.data, ticket, &err);
    if (r < 0)
        return console_fail(exchange, &err);
    if (buf_printf(&out, "{\"url\":\"/console/download/%s\"}", ticket) < 0)
        return MHD_NO;
    return console_reply(exchange, &out, NULL, NULL);
}

/* Takes the ticket of this session: false if there is none. */
static bool ticket_take(struct console *console, const char *text, const char *session,
                        struct ticket *ret)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    uint64_t now = clock_ms();

    (void)SHA256((const unsigned char *)text, strlen(text), hash);
    lock_scope(&console->lock);
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *ticket = &console->tickets[i];

        if (!ticket->sandbox || ticket->until_ms <= now || strcmp(ticket->session, session) != 0 ||
            CRYPTO_memcmp(ticket->hash, hash, sizeof(hash)) != 0)
            continue;
        *ret = *ticket;
        *ticket = (struct ticket){ .sandbox = NULL };
        return true;
    }
    return false;
}

static void headers_add(struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
    (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    (void)MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
}

enum MHD_Result console_download(struct console *console, struct exchange *exchange)
{
    cleanup_with(ticket_clear) struct ticket ticket = { .sandbox = NULL };
    struct download_spec spec = {
        .host = console->host, .caller = &exchange->caller, .user = "", .headers_add = headers_add
    };

    session_find_by_cookie(exchange, &exchange->caller);
    if (exchange->caller.role == ROLE_NONE ||
        !ticket_take(console, exchange->path + strlen(CONSOLE_DOWNLOAD), exchange->caller.session,
                     &ticket))
        return console_refuse(exchange, &refuse_ticket);
    client_connection_set_token(exchange->client, credential_of(&exchange->caller));
    spec.sandbox = ticket.sandbox;
    spec.path = ticket.path;
    return download_answer(exchange, &spec);
}
