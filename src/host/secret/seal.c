// SPDX-License-Identifier: Apache-2.0
/* A sealed text is the hexadecimal form of: 12 bytes of nonce, the encrypted bytes, 16 bytes of
 * tag. Nonces are random: the key would have to seal 2^32 texts before two of them could be
 * expected to meet with a chance of 2^-33. */
#include "host/secret/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

DEFINE_CLEANUP(EVP_CIPHER_CTX_free, EVP_CIPHER_CTX *);

int seal_key_read(int dir_fd, const char *name, struct seal_key *ret, struct err *err)
{
    cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char text[HEX_SIZE(SEAL_KEY_BYTES) + 1] = "";
    struct stat st;
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, -errno, "open %s in the state directory", name);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0) {
        (void)err_set(err, ERR_INTERNAL, "%s in the state directory can be read by others", name);
        return err_remedy(err, "make it a file of mode 0600, and replace all secrets");
    }
    n = read_full(fd, text, sizeof(text) - 1);
    if (n < 0)
        return err_sys(err, (int)n, "read %s in the state directory", name);
    if (n != HEX_SIZE(SEAL_KEY_BYTES) || text[n - 1] != '\n' ||
        (text[n - 1] = '\0', !hex_decode(text, ret->bytes, sizeof(ret->bytes)))) {
        (void)err_set(err, ERR_INTERNAL, "%s in the state directory is not a key", name);
        return err_remedy(err, "restore the file from a backup");
    }
    explicit_bzero(text, sizeof(text));
    return 0;
}

int seal_key_make(int dir_fd, const char *name, struct seal_key *ret, struct err *err)
{
    char text[HEX_SIZE(SEAL_KEY_BYTES)];
    int r = random_bytes(ret->bytes, sizeof(ret->bytes));

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    hex_encode(ret->bytes, sizeof(ret->bytes), text);
    text[sizeof(text) - 1] = '\n';
    r = file_replace_at(dir_fd, name, text, sizeof(text));
    explicit_bzero(text, sizeof(text));
    return r < 0 ? err_sys(err, r, "write %s in the state directory", name) : 0;
}

int seal_close(const struct seal_key *key, const struct seal_context *context, const void *data,
               size_t len, char *ret)
{
    cleanup_with(EVP_CIPHER_CTX_free_slot) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    cleanup_free unsigned char *sealed = xcalloc(1, len + SEAL_EXTRA_BYTES);
    unsigned char *body = sealed + SEAL_NONCE_BYTES;
    int written = 0, r = random_bytes(sealed, SEAL_NONCE_BYTES);

    if (r < 0)
        return r;
    if (!cipher || EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, sealed) != 1 ||
        EVP_EncryptUpdate(cipher, NULL, &written, context->data, (int)context->len) != 1 ||
        EVP_EncryptUpdate(cipher, body, &written, data, (int)len) != 1 ||
        EVP_EncryptFinal_ex(cipher, body + written, &written) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, SEAL_TAG_BYTES, body + len) != 1)
        return -EIO;
    hex_encode(sealed, len + SEAL_EXTRA_BYTES, ret);
    return 0;
}

int seal_open(const struct seal_key *key, const struct seal_context *context, const char *text,
              void *ret, size_t size)
{
    cleanup_with(EVP_CIPHER_CTX_free_slot) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    size_t bytes = strlen(text) / 2, len = bytes - SEAL_EXTRA_BYTES;
    cleanup_free unsigned char *sealed = xcalloc(1, bytes + 1);
    unsigned char *body = sealed + SEAL_NONCE_BYTES;
    int written = 0;

    if (bytes < SEAL_EXTRA_BYTES || !hex_decode(text, sealed, bytes))
        return -EBADMSG;
    if (len > size)
        return -ENOSPC;
    if (!cipher || EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, sealed) != 1 ||
        EVP_DecryptUpdate(cipher, NULL, &written, context->data, (int)context->len) != 1 ||
        EVP_DecryptUpdate(cipher, ret, &written, body, (int)len) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, SEAL_TAG_BYTES, body + len) != 1 ||
        EVP_DecryptFinal_ex(cipher, (unsigned char *)ret + written, &written) != 1) {
        explicit_bzero(ret, len);
        return -EBADMSG;
    }
    return (int)len;
}
