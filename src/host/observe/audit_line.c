// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "host/observe/audit_internal.h"

const struct audit_link audit_origin = {
    .hash = "0000000000000000000000000000000000000000000000000000000000000000",
};

int audit_hash(const char *line, size_t len, char ret_hex[static DIGEST_HEX_LEN + 1])
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();

    if (!digest)
        return -EIO;
    digest_add(digest, line, len);
    digest_add(digest, "}", 1);
    return digest_hex(digest, ret_hex);
}

const char *audit_line_read(const char *line, size_t len, struct audit_link *ret_link,
                            json_t **ret_object)
{
    static const char *const no_record = "is not an audit record";
    cleanup_json json_t *object = NULL;
    char wanted[AUDIT_HASH_LEN + 1];
    const char *prev;
    json_int_t seq;

    if (len <= AUDIT_HASH_LEN)
        return no_record;
    if (audit_hash(line, len - AUDIT_HASH_LEN, ret_link->hash) < 0)
        return "cannot be hashed";
    (void)snprintf(wanted, sizeof(wanted), AUDIT_HASH_BEFORE "%s" AUDIT_HASH_AFTER, ret_link->hash);
    if (memcmp(line + len - AUDIT_HASH_LEN, wanted, AUDIT_HASH_LEN) != 0)
        return "does not match its hash";

    object = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    prev = json_string_value(json_object_get(object, "prev"));
    seq = json_integer_value(json_object_get(object, "seq"));
    if (!prev || strlen(prev) != DIGEST_HEX_LEN || seq <= 0)
        return no_record;
    (void)snprintf(ret_link->prev, sizeof(ret_link->prev), "%s", prev);
    ret_link->seq = (uint64_t)seq;
    *ret_object = TAKE_PTR(object);
    return NULL;
}
