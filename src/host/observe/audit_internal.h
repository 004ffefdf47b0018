/* One line of the audit log, shared by its writer and its reader. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "host/observe/audit.h"
#include "store/import/digest.h"

#define AUDIT_FILE "audit.jsonl"
#define AUDIT_TORN_FILE "audit.torn"

enum { AUDIT_LINE_MAX = 64 << 10 }; /* with the newline */

/* At the end of each line: ,"hash":"..."} */
#define AUDIT_HASH_BEFORE ",\"hash\":\""
#define AUDIT_HASH_AFTER "\"}"
enum {
    AUDIT_HASH_LEN = sizeof(AUDIT_HASH_BEFORE) - 1 + DIGEST_HEX_LEN + sizeof(AUDIT_HASH_AFTER) - 1
};

/* The position of a line in the hash chain. */
struct audit_link {
    uint64_t seq;
    char prev[DIGEST_HEX_LEN + 1];
    char hash[DIGEST_HEX_LEN + 1];
};

/* The link before the first line. */
extern const struct audit_link audit_origin;

/* Computes the hash of a line from its first len bytes, which end before the hash member. */
int audit_hash(const char *line, size_t len, char ret_hex[static DIGEST_HEX_LEN + 1]);

/* Checks a single line (without newline) and reads its link. Returns NULL, or what is wrong with
 * it. The caller drops the object. */
const char *audit_line_read(const char *line, size_t len, struct audit_link *ret_link,
                            json_t **ret_object);
