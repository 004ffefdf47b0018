// SPDX-License-Identifier: Apache-2.0
/* "v1_" and the base64, without padding, of the SHA-256 of "path:read|write:user:token", with
 * ":expiration" behind it where there is one. */
#include "e2b/core/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "host/core/reactor.h"

enum { SIGNATURE_SIZE = 3 + (SHA256_DIGEST_LENGTH + 2) / 3 * 4 + 1 };

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void sign(const char *text, char ret[SIGNATURE_SIZE])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)text, strlen(text), digest);
    memcpy(ret, "v1_", 3);
    (void)EVP_EncodeBlock((unsigned char *)ret + 3, digest, sizeof(digest));
    ret[strcspn(ret, "=")] = '\0';
}

bool e2b_signature_matches(const struct e2b_request *request, const char *token)
{
    const char *given = or_empty(e2b_query(request, "signature"));
    const char *expires = e2b_query(request, "signature_expiration");
    const char *user = or_empty(e2b_query(request, "username"));
    bool reads = strcmp(request->verb, MHD_HTTP_METHOD_GET) == 0 ||
                 strcmp(request->verb, MHD_HTTP_METHOD_HEAD) == 0;
    cleanup_free char *text =
        xasprintf("%s:%s:%s:%s%s%s", or_empty(e2b_query(request, "path")), reads ? "read" : "write",
                  user, token, expires ? ":" : "", or_empty(expires));
    char wanted[SIGNATURE_SIZE];

    /* A colon in a name would shift the fields: a signed path could be used as another path, with
     * another verb. */
    if (strchr(user, ':'))
        return false;
    sign(text, wanted);
    return strlen(given) == strlen(wanted) && CRYPTO_memcmp(given, wanted, strlen(wanted)) == 0;
}

bool e2b_signature_is_over(const struct e2b_request *request)
{
    const char *text = e2b_query(request, "signature_expiration");
    uint64_t seconds;

    return text && (parse_u64(text, &seconds) < 0 || seconds < clock_wall_ms() / 1000);
}
