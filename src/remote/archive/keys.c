// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/keys.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "remote/archive.h"

#define SALT "holt archive 1"

DEFINE_CLEANUP(EVP_KDF_free, EVP_KDF *);
DEFINE_CLEANUP(EVP_KDF_CTX_free, EVP_KDF_CTX *);

/* HKDF with SHA-256. What is derived depends on the owner and the purpose. */
static int key_derive(const struct archive_store *store, const char *purpose, void *ret, size_t len)
{
    static const uint8_t no_key[ARCHIVE_KEY_LEN];
    cleanup_with(EVP_KDF_free_slot) EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    cleanup_with(EVP_KDF_CTX_free_slot) EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    cleanup_free char *info = xasprintf("%s/%s", store->owner, purpose);
    const uint8_t *key = store->key ? store->key : no_key;
    /* OpenSSL takes pointers to data that it does not change. */
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key,
                                          ARCHIVE_KEY_LEN),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (char[]){ SALT }, strlen(SALT)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, strlen(info)),
        OSSL_PARAM_construct_end(),
    };

    if (!context || EVP_KDF_derive(context, ret, len, params) != 1)
        return -EIO;
    return 0;
}

int archive_keys_derive(const struct archive_store *store, struct archive_keys *ret,
                        struct err *err)
{
    struct archive_keys keys = { .is_sealed = store->key != NULL };
    int r = key_derive(store, "gears", keys.gears, sizeof(keys.gears));

    if (r == 0 && keys.is_sealed)
        r = key_derive(store, "identity", keys.id, sizeof(keys.id));
    if (r == 0 && keys.is_sealed)
        r = key_derive(store, "seal", keys.seal, sizeof(keys.seal));
    if (r == 0)
        *ret = keys;
    archive_keys_wipe(&keys);
    return r < 0 ? err_sys(err, r, "derive the keys of archives of owner '%.80s'", store->owner)
                 : 0;
}

void archive_keys_wipe(struct archive_keys *keys)
{
    explicit_bzero(keys, sizeof(*keys));
}

static int hmac(const uint8_t key[32], const void *data, size_t len, uint8_t ret[32])
{
    unsigned written = 0;

    return HMAC(EVP_sha256(), key, 32, data, len, ret, &written) && written == 32 ? 0 : -EIO;
}

int archive_identify(const struct archive_keys *keys, const void *data, size_t len,
                     uint8_t ret[ARCHIVE_ID_LEN])
{
    if (keys->is_sealed)
        return hmac(keys->id, data, len, ret);
    return SHA256(data, len, ret) ? 0 : -EIO;
}

int archive_object_key(const struct archive_keys *keys, uint8_t kind,
                       const uint8_t id[ARCHIVE_ID_LEN], uint8_t ret[32])
{
    uint8_t input[1 + ARCHIVE_ID_LEN];

    input[0] = kind;
    memcpy(input + 1, id, ARCHIVE_ID_LEN);
    return hmac(keys->seal, input, sizeof(input), ret);
}
