/* Which of its places a request of the E2B protocol is for, by its header alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/sandbox/info.h"

enum { E2B_ENVD_PORT = 49983 };

struct e2b_place {
    enum e2b_kind {
        E2B_NONE,    /* the request is Holt's own */
        E2B_CONTROL, /* the control API */
        E2B_ENVD,
        E2B_PORT,   /* of a program in a sandbox */
        E2B_SIGNED, /* /files with a signature that tells the sandbox */
    } kind;
    char sandbox[SANDBOX_ID_MAX]; /* as E2B's clients spell it */
    uint16_t port;
};

/* What is looked at of a request; NULL: it has no such header. */
struct e2b_signs {
    const char *path; /* decoded */
    const char *sandbox_header;
    const char *port_header;
    const char *host;
    bool has_signature; /* in the query */
    bool has_key;       /* of the control API, at a path that is none of Holt's */
};

/* False where the headers contradict themselves: a port that is none. */
bool e2b_place_find(const struct e2b_signs *signs, struct e2b_place *ret);

/* "3000-sb1234.example.org:80" is port 3000 of that sandbox, and "example.org:80" is who must be
 * known to be us; the latter, or NULL where the host has no such form. */
const char *e2b_host_parse(const char *host, uint16_t *ret_port, char ret_sandbox[SANDBOX_ID_MAX]);

/* Holt's "sb-0123" is E2B's "sb0123": a host name is split at its first dash. False for what is no
 * id of that kind. */
bool e2b_id_from(const char *holt, char ret[SANDBOX_ID_MAX]);
bool e2b_id_to(const char *e2b, char ret[SANDBOX_ID_MAX]);
