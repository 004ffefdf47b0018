/* What tests of archives share: a storage in a directory, behind hooks that let it fail. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "check.h"
#include "remote/archive.h"
#include "remote/backend.h"

enum { MIB = 1024 * 1024, KEYS_MAX = 4096 };

static const uint8_t one_key[ARCHIVE_KEY_LEN] = "the key of this host";

static char top[] = "/tmp/holt-archive-XXXXXX";
static struct remote *inner; /* the directory */
static struct err err;

/* --- the storage ------------------------------------------------------------------------------ */

/* A hook before a call returns 0, or fails in its place; one behind it may change what it did. */
static struct {
    int (*put)(const struct remote_put *put, struct err *err);
    int (*put_done)(const struct remote_put *put, int r, struct err *err);
    void (*got)(const char *key, struct buf *content);
    int (*remove)(const char *key, struct err *err);
} hooks;

static int hooked_put(struct remote *remote, const struct remote_put *put, struct err *error)
{
    int r = hooks.put ? hooks.put(put, error) : 0;

    (void)remote;
    if (r == 0)
        r = inner->ops->put(inner, put, error);
    return hooks.put_done ? hooks.put_done(put, r, error) : r;
}

static int hooked_get(struct remote *remote, const char *key, struct buf *ret, struct err *error)
{
    int r = inner->ops->get(inner, key, ret, error);

    (void)remote;
    if (r == 0 && hooks.got)
        hooks.got(key, ret);
    return r;
}

static int hooked_size_of(struct remote *remote, const char *key, uint64_t *ret, struct err *error)
{
    (void)remote;
    return inner->ops->size_of(inner, key, ret, error);
}

static int hooked_remove(struct remote *remote, const char *key, struct err *error)
{
    int r = hooks.remove ? hooks.remove(key, error) : 0;

    (void)remote;
    return r < 0 ? r : inner->ops->remove(inner, key, error);
}

static int hooked_list(struct remote *remote, const struct remote_list *list, struct err *error)
{
    (void)remote;
    return inner->ops->list(inner, list, error);
}

static const struct remote_ops hooked_ops = {
    .put = hooked_put,
    .get = hooked_get,
    .size_of = hooked_size_of,
    .remove = hooked_remove,
    .list = hooked_list,
};

static char hooked_where[] = "the test's storage";
static struct remote hooked = { .ops = &hooked_ops, .where = hooked_where };

static const struct archive_store plain = { .remote = &hooked, .owner = "alice", .host = "here" };
static const struct archive_store sealed = {
    .remote = &hooked,
    .owner = "alice",
    .key = one_key,
    .host = "here",
};

static inline void around_storage(test_fn *test)
{
    char url[64];

    CHECK(mkdtemp(top));
    (void)snprintf(url, sizeof(url), "file://%s", top);
    CHECK(remote_open(&(struct remote_config){ .url = url }, &inner, &err) == 0, "(%s)", err.msg);
    test();
    remote_close(inner);
    CHECK(tree_remove_at(AT_FDCWD, top) == 0);
}

#define RUN_WITH_STORAGE(test) test_run(#test, test, around_storage)

/* The keys that the storage has. */
struct keys {
    char *keys[KEYS_MAX];
    size_t count;
};

static inline int keys_add(void *context, const struct remote_object *object)
{
    struct keys *keys = context;

    CHECK(keys->count < KEYS_MAX);
    keys->keys[keys->count++] = xstrdup(object->key);
    return 0;
}

static inline void keys_done(struct keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->keys[i]);
    keys->count = 0;
}

static inline struct keys keys_of(const char *prefix)
{
    struct keys keys = { .count = 0 };

    CHECK(remote_list(inner, prefix, keys_add, &keys, &err) == 0, "(%s)", err.msg);
    return keys;
}

static inline size_t count_keys(const char *prefix)
{
    cleanup_with(keys_done) struct keys keys = keys_of(prefix);

    return keys.count;
}

static inline struct buf object_get(const char *key)
{
    struct buf content = BUF_INIT(REMOTE_OBJECT_MAX);

    CHECK(remote_get(inner, key, &content, &err) == 0, "(%s)", err.msg);
    return content;
}

static inline void object_put(const char *key, const void *data, size_t len)
{
    CHECK(remote_put(inner, key, data, len, &err) == 0, "(%s)", err.msg);
}

/* --- streams ---------------------------------------------------------------------------------- */

struct stream {
    uint8_t *bytes;
    size_t len;
};

static inline void stream_done(struct stream *stream)
{
    free(stream->bytes);
}

/* The same bytes for the same seed, which nothing can compress. */
static inline struct stream random_stream(uint64_t seed, size_t len)
{
    struct stream stream = { .bytes = xcalloc(1, len + 8), .len = len };

    for (size_t i = 0; i < len; i += 8) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t value = seed;

        value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
        value ^= value >> 31;
        memcpy(stream.bytes + i, &value, 8);
    }
    return stream;
}

/* Writes a stream in parts of uneven lengths and finishes it: 0, or fails. */
static inline int try_write(const struct archive_store *store, const char *name,
                            const struct stream *stream, struct archive_info *ret,
                            struct err *error)
{
    struct archive_writer *writer = NULL;
    size_t part = 1, at = 0;
    int r = archive_writer_open(store, &writer, error);

    while (r == 0 && at < stream->len) {
        size_t n = part < stream->len - at ? part : stream->len - at;

        r = archive_write(writer, stream->bytes + at, n, error);
        at += n;
        part = part * 7 % 3000017 + 1;
    }
    if (r == 0)
        r = archive_writer_finish(writer, name, "{\"about\": \"a test\"}", ret, error);
    archive_writer_close(writer);
    return r;
}

/* Returns the bytes that the archive added. */
static inline uint64_t write_archive(const struct archive_store *store, const char *name,
                                     const struct stream *stream)
{
    cleanup_with(archive_info_done) struct archive_info info = { 0 };

    CHECK(try_write(store, name, stream, &info, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(info.name, name);
    CHECK(info.size == stream->len);
    return info.stored;
}

struct reading {
    const struct stream *stream;
    size_t at;
};

/* Bytes that are passed on are right, also when the read fails later. */
static inline int reading_data(void *context, const void *data, size_t len)
{
    struct reading *reading = context;

    CHECK(len <= reading->stream->len - reading->at);
    CHECK(memcmp(reading->stream->bytes + reading->at, data, len) == 0);
    reading->at += len;
    return 0;
}

/* Reads an archive, which has to be the stream as far as it can be read: 0, or fails. */
static inline int try_read(const struct archive_store *store, const char *name,
                           const struct stream *stream, struct err *error)
{
    struct reading reading = { .stream = stream };
    int r = archive_read(store, name, reading_data, &reading, error);

    CHECK(r < 0 || reading.at == stream->len, "(%zu of %zu)", reading.at, stream->len);
    return r;
}

static inline void check_archive(const struct archive_store *store, const char *name,
                                 const struct stream *stream)
{
    CHECK(try_read(store, name, stream, &err) == 0, "(%s)", err.msg);
}

static inline uint64_t collect(const struct archive_store *store)
{
    struct archive_collected collected = { 0 };

    CHECK(archive_collect(store, &collected, &err) == 0, "(%s)", err.msg);
    return collected.objects;
}
