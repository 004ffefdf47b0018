// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/object.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/xalloc.h"

#define MAGIC "hlta"

/* A level above costs more time than a storage takes to write what it saves. */
enum { ZSTD_LEVEL = 1 };

enum { VERSION = 1, FLAG_SEALED = 1, FLAG_COMPRESSED = 2 };

enum { HEAD_LEN = 12, NONCE_LEN = 12, TAG_LEN = 16, HASH_LEN = 32 };

_Static_assert(HEAD_LEN + NONCE_LEN + TAG_LEN <= ARCHIVE_OBJECT_EXTRA, "room for a seal");
_Static_assert(HEAD_LEN + HASH_LEN <= ARCHIVE_OBJECT_EXTRA, "room for a hash");

struct head {
    char magic[4];
    uint8_t version, kind, flags, zero;
    uint32_t size;
};

_Static_assert(sizeof(struct head) == HEAD_LEN, "the head has no gaps");

struct archive_codec {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    EVP_CIPHER_CTX *cipher;
    EVP_MD_CTX *hash;
    struct buf body; /* a compressed one on its way */
};

struct archive_codec *archive_codec_new(void)
{
    struct archive_codec *codec = xcalloc(1, sizeof(*codec));

    codec->compressor = ZSTD_createCCtx();
    codec->decompressor = ZSTD_createDCtx();
    codec->cipher = EVP_CIPHER_CTX_new();
    codec->hash = EVP_MD_CTX_new();
    codec->body.max = ARCHIVE_CHUNK_MAX;
    if (!codec->compressor || !codec->decompressor || !codec->cipher || !codec->hash)
        abort();
    return codec;
}

void archive_codec_free(struct archive_codec *codec)
{
    if (!codec)
        return;
    ZSTD_freeCCtx(codec->compressor);
    ZSTD_freeDCtx(codec->decompressor);
    EVP_CIPHER_CTX_free(codec->cipher);
    EVP_MD_CTX_free(codec->hash);
    buf_done(&codec->body);
    free(codec);
}

/* --- sealing ---------------------------------------------------------------------------------- */

/* Prepares the cipher of a subject for one nonce; the tag covers the head, too. */
static int cipher_begin(struct archive_codec *codec, const struct archive_subject *subject,
                        const struct head *head, const uint8_t *nonce, bool is_sealing)
{
    EVP_CIPHER_CTX *cipher = codec->cipher;
    uint8_t key[32];
    int written, r = archive_object_key(subject->keys, head->kind, subject->id, key);

    if (r == 0 &&
        (EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, nonce, is_sealing) != 1 ||
         EVP_CipherUpdate(cipher, NULL, &written, (const uint8_t *)head, HEAD_LEN) != 1))
        r = -EIO;
    explicit_bzero(key, sizeof(key));
    return r;
}

static int body_seal(struct archive_codec *codec, const struct archive_subject *subject,
                     const struct head *head, struct buf *ret, const void *body, size_t len)
{
    uint8_t *nonce = (uint8_t *)ret->data + ret->len, *sealed = nonce + NONCE_LEN;
    int written = 0, r = random_bytes(nonce, NONCE_LEN);

    if (r == 0)
        r = cipher_begin(codec, subject, head, nonce, true);
    if (r == 0 &&
        (EVP_EncryptUpdate(codec->cipher, sealed, &written, body, (int)len) != 1 ||
         EVP_EncryptFinal_ex(codec->cipher, sealed + len, &written) != 1 ||
         EVP_CIPHER_CTX_ctrl(codec->cipher, EVP_CTRL_GCM_GET_TAG, TAG_LEN, sealed + len) != 1))
        r = -EIO;
    if (r == 0)
        ret->len += NONCE_LEN + len + TAG_LEN;
    return r;
}

/* Decrypts a body of `len` bytes to ret, which has the room. */
static int body_unseal(struct archive_codec *codec, const struct archive_subject *subject,
                       const struct head *head, const uint8_t *nonce, size_t len, uint8_t *ret)
{
    const uint8_t *sealed = nonce + NONCE_LEN;
    uint8_t tag[TAG_LEN];
    int written = 0, r = cipher_begin(codec, subject, head, nonce, false);

    memcpy(tag, sealed + len, TAG_LEN);
    if (r < 0)
        return r;
    if (EVP_DecryptUpdate(codec->cipher, ret, &written, sealed, (int)len) != 1 ||
        EVP_CIPHER_CTX_ctrl(codec->cipher, EVP_CTRL_GCM_SET_TAG, TAG_LEN, tag) != 1 ||
        EVP_DecryptFinal_ex(codec->cipher, ret + len, &written) != 1) {
        explicit_bzero(ret, len);
        return -EBADMSG;
    }
    return 0;
}

/* --- hash of lists without a seal ------------------------------------------------------------- */

static int body_hash(struct archive_codec *codec, const struct archive_subject *subject,
                     const struct head *head, const void *body, size_t len, uint8_t ret[HASH_LEN])
{
    unsigned written = 0;

    if (EVP_DigestInit_ex(codec->hash, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(codec->hash, head, HEAD_LEN) != 1 ||
        EVP_DigestUpdate(codec->hash, subject->id, ARCHIVE_ID_LEN) != 1 ||
        EVP_DigestUpdate(codec->hash, body, len) != 1 ||
        EVP_DigestFinal_ex(codec->hash, ret, &written) != 1)
        return -EIO;
    return 0;
}

static size_t extra_len(const struct head *head)
{
    if (head->flags & FLAG_SEALED)
        return NONCE_LEN + TAG_LEN;
    return head->kind == ARCHIVE_LIST ? HASH_LEN : 0;
}

/* --- make ------------------------------------------------------------------------------------- */

/* Sets *body and *len to the compressed content if that is smaller. */
static int content_compress(struct archive_codec *codec, const void *content, const void **body,
                            size_t *len)
{
    size_t n;
    int r = 0;

    buf_clear(&codec->body);
    if (*len > 0)
        r = buf_reserve(&codec->body, *len);
    if (r < 0 || *len == 0)
        return r;
    /* It fails where the result does not fit. */
    n = ZSTD_compressCCtx(codec->compressor, codec->body.data, *len - 1, content, *len, ZSTD_LEVEL);
    if (ZSTD_isError(n))
        return 0;
    *body = codec->body.data;
    *len = n;
    return 1;
}

int archive_object_make(struct archive_codec *codec, const struct archive_subject *subject,
                        const void *content, size_t len, struct buf *ret)
{
    struct head head = {
        .magic = MAGIC,
        .version = VERSION,
        .kind = (uint8_t)subject->kind,
        .flags = subject->keys->is_sealed ? FLAG_SEALED : 0,
        .size = htole32((uint32_t)len),
    };
    const void *body = content;
    size_t body_len = len;
    int r = len > ARCHIVE_CHUNK_MAX ? -ENOBUFS : content_compress(codec, content, &body, &body_len);

    if (r < 0)
        return r;
    if (r > 0)
        head.flags |= FLAG_COMPRESSED;
    r = buf_reserve(ret, HEAD_LEN + body_len + extra_len(&head));
    if (r == 0)
        r = buf_add(ret, &head, HEAD_LEN);
    if (r < 0)
        return r;
    if (head.flags & FLAG_SEALED)
        return body_seal(codec, subject, &head, ret, body, body_len);
    r = buf_add(ret, body, body_len);
    if (r == 0 && head.kind == ARCHIVE_LIST) {
        r = body_hash(codec, subject, &head, body, body_len, (uint8_t *)ret->data + ret->len);
        ret->len += HASH_LEN;
    }
    return r;
}

/* --- open ------------------------------------------------------------------------------------- */

/* Checks all that can be seen without a key and returns the bytes of the body. */
static ssize_t head_check(const struct archive_subject *subject, const struct head *head,
                          size_t len)
{
    size_t size = le32toh(head->size);
    bool is_sealed = (head->flags & FLAG_SEALED) != 0;

    if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0 || head->version != VERSION ||
        head->kind != subject->kind || (head->flags & ~(FLAG_SEALED | FLAG_COMPRESSED)) != 0 ||
        head->zero != 0 || size > ARCHIVE_CHUNK_MAX || len < HEAD_LEN + extra_len(head))
        return -EBADMSG;
    if (is_sealed != subject->keys->is_sealed)
        return -ENOKEY;
    len -= HEAD_LEN + extra_len(head);
    if (head->flags & FLAG_COMPRESSED ? len >= size : len != size)
        return -EBADMSG;
    return (ssize_t)len;
}

/* Decompresses a body of `len` bytes to ret, which has room for `size`. */
static int body_decompress(struct archive_codec *codec, const void *body, size_t len, void *ret,
                           size_t size)
{
    size_t n = ZSTD_decompressDCtx(codec->decompressor, ret, size, body, len);

    return ZSTD_isError(n) || n != size ? -EBADMSG : 0;
}

/* Fills *body with what a body is before it is decompressed. */
static int body_open(struct archive_codec *codec, const struct archive_subject *subject,
                     const struct head *head, const uint8_t **body, size_t len)
{
    uint8_t hash[HASH_LEN];
    int r;

    if (head->flags & FLAG_SEALED) {
        buf_clear(&codec->body);
        r = buf_reserve(&codec->body, len);
        if (r == 0)
            r = body_unseal(codec, subject, head, *body, len, (uint8_t *)codec->body.data);
        *body = (const uint8_t *)codec->body.data;
        return r;
    }
    if (head->kind != ARCHIVE_LIST)
        return 0;
    r = body_hash(codec, subject, head, *body, len, hash);
    if (r == 0 && memcmp(hash, *body + len, HASH_LEN) != 0)
        r = -EBADMSG;
    return r;
}

int archive_object_open(struct archive_codec *codec, const struct archive_subject *subject,
                        const void *object, size_t len, struct buf *ret)
{
    const uint8_t *body;
    struct head head;
    size_t size;
    ssize_t n;
    int r;

    if (len < HEAD_LEN)
        return -EBADMSG;
    memcpy(&head, object, HEAD_LEN);
    body = (const uint8_t *)object + HEAD_LEN;
    n = head_check(subject, &head, len);
    if (n < 0)
        return (int)n;
    size = le32toh(head.size);
    r = buf_reserve(ret, size);
    if (r == 0)
        r = body_open(codec, subject, &head, &body, (size_t)n);
    if (r < 0)
        return r;
    if (!(head.flags & FLAG_COMPRESSED))
        return buf_add(ret, body, size);
    r = body_decompress(codec, body, (size_t)n, ret->data + ret->len, size);
    if (r == 0)
        ret->len += size;
    ret->data[ret->len] = '\0';
    return r;
}
