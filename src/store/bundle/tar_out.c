// SPDX-License-Identifier: Apache-2.0
#include "store/bundle/tar_out.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    NAME_BYTES = 100,
    CHECKSUM_AT = 148,
    CHECKSUM_BYTES = 8,
    NUMBER_MAX = 64,
    RECORD_HEAD_MAX = 24, /* the length of a record, in digits, with a blank */
};

#define OCTAL_11_MAX UINT64_C(077777777777)

/* The header of POSIX.1-2001. Numbers are octal; those that do not fit are pax records. */
struct ustar {
    char name[NAME_BYTES];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[CHECKSUM_BYTES];
    char type;
    char link[NAME_BYTES];
    char magic[8];
    char unused[TAR_BLOCK - 265];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a tar header is one block");

static const char zeros[2 * TAR_BLOCK];

/* Adds a pax record "LENGTH KEY=VALUE\n", where LENGTH counts its own digits. */
static int record_add(struct tar_out *out, const char *key, const void *value, size_t len)
{
    size_t rest = 1 + strlen(key) + 1 + len + 1, total = rest;
    char head[RECORD_HEAD_MAX];
    int r;

    for (int digits = 0; digits != snprintf(head, sizeof(head), "%zu", total);) {
        digits = snprintf(head, sizeof(head), "%zu", total);
        total = rest + (size_t)digits;
    }
    r = buf_printf(&out->records, "%zu %s=", total, key);
    if (r == 0)
        r = buf_add(&out->records, value, len);
    return r == 0 ? buf_add(&out->records, "\n", 1) : r;
}

static int record_add_text(struct tar_out *out, const char *key, const char *value)
{
    return record_add(out, key, value, strlen(value));
}

static int record_add_number(struct tar_out *out, const char *key, uint64_t value)
{
    char text[NUMBER_MAX];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return record_add_text(out, key, text);
}

int tar_out_xattr(struct tar_out *out, const char *name, const void *value, size_t len)
{
    char key[sizeof("SCHILY.xattr.") + NAME_MAX];

    if (strchr(name, '=') ||
        snprintf(key, sizeof(key), "SCHILY.xattr.%s", name) >= (int)sizeof(key))
        return -EINVAL;
    return record_add(out, key, value, len);
}

/* Adds the time if the header cannot have it: a fraction of a second, or before 1970. */
static int time_add(struct tar_out *out, struct timespec time)
{
    char text[NUMBER_MAX];

    if (time.tv_nsec == 0 && time.tv_sec >= 0 && (uint64_t)time.tv_sec <= OCTAL_11_MAX)
        return 0;
    /* The fraction counts up from the whole second, also before 1970. */
    if (time.tv_sec < 0 && time.tv_nsec > 0)
        (void)snprintf(text, sizeof(text), "%s%" PRId64 ".%09ld", time.tv_sec == -1 ? "-" : "",
                       (int64_t)time.tv_sec + 1, 1000000000 - time.tv_nsec);
    else
        (void)snprintf(text, sizeof(text), "%" PRId64 ".%09ld", (int64_t)time.tv_sec, time.tv_nsec);
    return record_add_text(out, "mtime", text);
}

static int records_fill(struct tar_out *out, const struct tar_node *node)
{
    bool is_long = strlen(node->path) > NAME_BYTES - 1; /* a directory gets a slash */
    int r = time_add(out, node->mtime);

    if (r == 0 && node->sparse_size) {
        r = record_add_text(out, "GNU.sparse.major", "1");
        if (r == 0)
            r = record_add_text(out, "GNU.sparse.minor", "0");
        if (r == 0)
            r = record_add_text(out, "GNU.sparse.name", node->path);
        if (r == 0)
            r = record_add_number(out, "GNU.sparse.realsize", node->sparse_size);
    } else if (r == 0 && is_long) {
        r = record_add_text(out, "path", node->path);
    }
    if (r == 0 && node->link && strlen(node->link) > NAME_BYTES)
        r = record_add_text(out, "linkpath", node->link);
    if (r == 0 && node->size > OCTAL_11_MAX)
        r = record_add_number(out, "size", node->size);
    return r;
}

/* Writes digits and, where there is room, a NUL. */
static void octal_set(char *field, size_t size, uint64_t value)
{
    char text[NUMBER_MAX];

    (void)snprintf(text, sizeof(text), "%0*" PRIo64, (int)size - 1, value);
    memcpy(field, text, size - 1);
}

/* Copies what fits: a longer name is in a record. */
static void text_set(char *field, const char *text)
{
    size_t len = strlen(text);

    memcpy(field, text, len < NAME_BYTES ? len : NAME_BYTES);
}

static void header_fill(struct ustar *header, const struct tar_node *node)
{
    const unsigned char *bytes = (const void *)header;
    size_t len = strlen(node->path);
    unsigned sum = 0;

    text_set(header->name, node->path);
    if (node->type == '5' && len < NAME_BYTES)
        header->name[len] = '/';
    octal_set(header->mode, sizeof(header->mode), node->mode & 07777);
    octal_set(header->uid, sizeof(header->uid), node->uid & 07777777);
    octal_set(header->gid, sizeof(header->gid), node->gid & 07777777);
    octal_set(header->size, sizeof(header->size), node->size > OCTAL_11_MAX ? 0 : node->size);
    octal_set(header->mtime, sizeof(header->mtime),
              node->mtime.tv_sec < 0 || (uint64_t)node->mtime.tv_sec > OCTAL_11_MAX
                  ? 0
                  : (uint64_t)node->mtime.tv_sec);
    header->type = node->type;
    if (node->link)
        text_set(header->link, node->link);
    memcpy(header->magic, "ustar\00000", sizeof(header->magic));
    memset(header->checksum, ' ', sizeof(header->checksum));
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += bytes[i];
    octal_set(header->checksum, CHECKSUM_BYTES - 1, sum);
    header->checksum[CHECKSUM_BYTES - 2] = '\0';
}

/* Writes the records as an entry of their own, before the one that they are about. */
static int records_write(struct tar_out *out)
{
    const struct tar_node node = {
        .path = "PaxHeaders/entry", .type = 'x', .mode = 0644, .size = out->records.len
    };
    struct ustar header = { .type = 0 };
    int r;

    if (out->records.len == 0)
        return 0;
    header_fill(&header, &node);
    r = out->write(out->context, &header, sizeof(header));
    if (r == 0)
        r = out->write(out->context, out->records.data, out->records.len);
    if (r == 0)
        r = tar_out_pad(out, out->records.len);
    buf_clear(&out->records);
    return r;
}

int tar_out_header(struct tar_out *out, const struct tar_node *node)
{
    struct ustar header = { .type = 0 };
    int r = records_fill(out, node);

    if (r == 0)
        r = records_write(out);
    if (r < 0) {
        buf_clear(&out->records);
        return r;
    }
    header_fill(&header, node);
    return out->write(out->context, &header, sizeof(header));
}

int tar_out_data(struct tar_out *out, const void *data, size_t len)
{
    return out->write(out->context, data, len);
}

int tar_out_pad(struct tar_out *out, uint64_t size)
{
    size_t rest = size % TAR_BLOCK;

    return rest ? out->write(out->context, zeros, TAR_BLOCK - rest) : 0;
}

int tar_out_end(struct tar_out *out)
{
    return out->write(out->context, zeros, sizeof(zeros));
}

void tar_out_done(struct tar_out *out)
{
    buf_done(&out->records);
}
