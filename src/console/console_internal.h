/* Shared by the files of the console. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/session.h"
#include "base/buf.h"
#include "base/lock.h"
#include "base/thread.h"
#include "console/throttle.h"

struct err;
struct exchange;
struct host;
struct refusal;
struct session_store;

#define CONSOLE_DOWNLOAD "/console/download/"

enum {
    CONSOLE_BODY_MAX = 32 * 1024,
    CONSOLE_REPLY_MAX = 64 * 1024,
    TICKETS_MAX = 1024,
    TICKETS_OF_SESSION_MAX = 64,
    TICKET_HASH_BYTES = 32,
};

/* One download that a session may begin. */
struct ticket {
    unsigned char hash[TICKET_HASH_BYTES];
    char session[SESSION_ID_LEN + 1];
    char owner[OWNER_NAME_MAX + 1];
    char *sandbox; /* NULL: the place is free */
    char *path;
    uint64_t until_ms; /* clock_ms */
};

struct console {
    struct host *host;
    struct session_store *sessions; /* without logins if the console is off */
    struct worker sweeper;          /* ends sessions at their time */
    char *dir;

    struct lock lock; /* protects what follows */
    struct throttle throttle;
    struct ticket tickets[TICKETS_MAX];
};

/* --- reply.c ---------------------------------------------------------------------------------- */

/* Adds what every reply of the console has: no other origin may use, frame or guess it. */
void console_headers_add(struct MHD_Response *response);

/* Sends a JSON text, with one more header unless name is NULL. */
enum MHD_Result console_reply(struct exchange *exchange, struct buf *body, const char *name,
                              const char *value);

/* Sends an error as the API does. */
enum MHD_Result console_fail(struct exchange *exchange, const struct err *err);

enum MHD_Result console_refuse(struct exchange *exchange, const struct refusal *refusal);

/* --- files.c ---------------------------------------------------------------------------------- */

/* Whether the path is that of a built file, or of the first page. */
bool console_has_file(const struct console *console, const struct exchange *exchange);

/* Sends a built file, or the page that says how to build them. */
enum MHD_Result console_send_file(const struct console *console, struct exchange *exchange);

/* --- login.c ---------------------------------------------------------------------------------- */

enum MHD_Result console_login(struct console *console, struct exchange *exchange);
/* Says on whose behalf a login would be, and makes none. */
enum MHD_Result console_look(struct console *console, struct exchange *exchange);
enum MHD_Result console_logout(struct console *console, struct exchange *exchange);
enum MHD_Result console_session(struct console *console, struct exchange *exchange);

/* --- ticket.c --------------------------------------------------------------------------------- */

enum MHD_Result console_ticket(struct console *console, struct exchange *exchange);
enum MHD_Result console_download(struct console *console, struct exchange *exchange);
void console_tickets_done(struct console *console);
