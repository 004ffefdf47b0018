/* Requests about sandboxes and snapshots as the host's own specs. What is parsed points into the
 * object and lives as long as that. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "host/sandbox/sandbox.h"

struct create_request {
    struct sandbox_spec spec;
    struct label *labels;  /* what spec points to, as to the next */
    const json_t *volumes; /* [{volume, path}], to be looked up; NULL: none */
    char digest[SANDBOX_DIGEST_LEN + 1];
};

int create_request_parse(const json_t *object, struct create_request *ret, struct err *err);
void create_request_done(struct create_request *request);

struct fork_request {
    const char *sandbox;
    const char *from; /* NULL: as it is now */
    uint32_t count;
};

int fork_request_parse(const json_t *object, struct fork_request *ret, struct err *err);

struct snapshot_request {
    const char *sandbox;
    const char *name;
    enum snapshot_kind kind;
};

int snapshot_request_parse(const json_t *object, struct snapshot_request *ret, struct err *err);

struct diff_request {
    const char *sandbox;
    struct sandbox_diff what;
};

int diff_request_parse(const json_t *object, struct diff_request *ret, struct err *err);
