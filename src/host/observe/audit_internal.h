/* One line of the audit log, as its writer and its reader see it. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "host/observe/audit.h"
#include "store/import/digest.h"

#define AUDIT_FILE "audit.jsonl"
#define AUDIT_TORN_FILE "audit.torn"

enum { AUDIT_LINE_MAX = 64 << 10 }; /* bytes, its newline among them */

/* Behind the rest of each line: ,"hash":"..."} */
#define AUDIT_HASH_BEFORE ",\"hash\":\""
#define AUDIT_HASH_AFTER "\"}"
enum {
    AUDIT_HASH_LEN = sizeof(AUDIT_HASH_BEFORE) - 1 + DIGEST_HEX_LEN + sizeof(AUDIT_HASH_AFTER) - 1
};

/* Where a line stands in the chain. */
struct audit_link {
    uint64_t seq;
    char prev[DIGEST_HEX_LEN + 1];
    char hash[DIGEST_HEX_LEN + 1];
};

/* What the first line follows. */
extern const struct audit_link audit_origin;

/* The hash of a line whose first len bytes, up to its last member but the hash, are these. */
int audit_hash(const char *line, size_t len, char ret_hex[static DIGEST_HEX_LEN + 1]);

/* Checks a line (without newline) by itself and reads its link: NULL, or what is wrong with it.
 * The object is the caller's to drop. */
const char *audit_line_read(const char *line, size_t len, struct audit_link *ret_link,
                            json_t **ret_object);
