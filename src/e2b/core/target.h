/* Where an E2B request is addressed to: control API, envd or a port. Its header alone decides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/sandbox/info.h"

enum { E2B_ENVD_PORT = 49983 };

struct e2b_target {
    enum e2b_kind {
        E2B_NONE,    /* not an E2B request */
        E2B_CONTROL, /* the control API */
        E2B_ENVD,
        E2B_PORT,   /* of a program in a sandbox */
        E2B_SIGNED, /* /files with a signature that identifies the sandbox */
    } kind;
    char sandbox[SANDBOX_ID_MAX]; /* in E2B's form, see e2b_id_from */
    uint16_t port;
};

/* The headers that decide; NULL: absent. */
struct e2b_request_headers {
    const char *path; /* decoded */
    const char *sandbox_header;
    const char *port_header;
    const char *host;
    bool has_signature; /* in the query */
    bool has_key;       /* an API key, at a path that no other front end owns */
};

/* Finds the target. Returns false for a malformed port. */
bool e2b_target_find(const struct e2b_request_headers *headers, struct e2b_target *ret);

/* What replies call the id of the client. SDKs before 2.0 append it to the id of a sandbox, with a
 * dash; the functions below accept and remove it. */
#define E2B_CLIENT_ID "holt"

/* Splits "3000-sb1234.example.org:80" into port, sandbox and our own name, "example.org:80".
 * Returns the name, or NULL if the host does not have this form. */
const char *e2b_host_parse(const char *host, uint16_t *ret_port, char ret_sandbox[SANDBOX_ID_MAX]);

/* Convert ids: Holt's "sb-0123" is "sb0123" for E2B, because host names are split at the first
 * dash. Return false for a malformed id. */
bool e2b_id_from(const char *holt, char ret[SANDBOX_ID_MAX]);
bool e2b_id_to(const char *e2b, char ret[SANDBOX_ID_MAX]);
