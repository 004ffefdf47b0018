// SPDX-License-Identifier: Apache-2.0
#include "store/import/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

enum { SHA256_BYTES = DIGEST_HEX_LEN / 2, CHUNK_BYTES = 128 << 10 };

struct digest {
    EVP_MD_CTX *context;
    bool is_broken;
};

struct digest *digest_new(void)
{
    cleanup_with(digest_free_slot) struct digest *digest = xcalloc(1, sizeof(*digest));

    digest->context = EVP_MD_CTX_new();
    if (!digest->context || EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) != 1)
        return NULL;
    return TAKE_PTR(digest);
}

void digest_add(struct digest *digest, const void *data, size_t len)
{
    if (EVP_DigestUpdate(digest->context, data, len) != 1)
        digest->is_broken = true;
}

int digest_hex(struct digest *digest, char ret_hex[static DIGEST_HEX_LEN + 1])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned len;

    if (digest->is_broken || EVP_DigestFinal_ex(digest->context, bytes, &len) != 1 ||
        len != SHA256_BYTES)
        return -EIO;
    hex_encode(bytes, SHA256_BYTES, ret_hex);
    return 0;
}

void digest_free(struct digest *digest)
{
    if (!digest)
        return;
    EVP_MD_CTX_free(digest->context);
    free(digest);
}

int digest_file(int fd, char ret_hex[static DIGEST_HEX_LEN + 1])
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    cleanup_free char *chunk = xcalloc(1, CHUNK_BYTES);
    ssize_t n;

    if (!digest)
        return -EIO;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    while ((n = read_full(fd, chunk, CHUNK_BYTES)) > 0)
        digest_add(digest, chunk, (size_t)n);
    if (n < 0)
        return (int)n;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return digest_hex(digest, ret_hex);
}
