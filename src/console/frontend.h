/* The web console as a front end of the HTTP server: its files at /, logins, sessions, tickets for
 * downloads below /console/. Its pages call holt.v1 like any other client. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/frontend.h"

struct console;
struct err;
struct host;
struct session_store;
struct token_store;

struct console_options {
    struct host *host;
    struct token_store *tokens;
    bool is_on;           /* otherwise every page is 404, and there are no logins */
    const char *dir;      /* of the built files; "": where make and make install put them */
    uint64_t session_ttl; /* milliseconds */
};

/* Reads the sessions that an earlier daemon has recorded. host and tokens must outlive it. */
int console_open(const struct console_options *options, struct console **ret, struct err *err);

/* Accepts NULL. */
void console_close(struct console *console);

/* The logins and previews, which belong to the console. */
struct session_store *console_sessions(struct console *console);

/* The context is a struct console. */
extern const struct frontend_ops console_frontend;
