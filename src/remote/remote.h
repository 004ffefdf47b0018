/* Object storage: named objects of at most 16 MiB, in a directory or behind the S3 API.
 *
 * Any thread may call any function. An object is whole or absent, also after a crash of this
 * machine: nobody sees a half-written one, and two writers of one key leave the object of one.
 * Nothing is locked between calls or between hosts that share a storage.
 *
 * A key has parts of [a-zA-Z0-9._-] with slashes between them, none of them "." or "..", with
 * REMOTE_KEY_MAX bytes at most. No key may be the folder of another: with "a/b" there is no "a". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct remote;

enum { REMOTE_OBJECT_MAX = 16 * 1024 * 1024, REMOTE_KEY_MAX = 512, REMOTE_PART_MAX = 200 };

/* The keys remote.* of holt.conf. Texts are "" or NULL where nothing is set. */
struct remote_config {
    const char *url;      /* file:///DIRECTORY, or s3://BUCKET[/PREFIX] */
    const char *endpoint; /* https://HOST[:PORT] of the S3 API; "": that of AWS in the region */
    const char *region;   /* "": us-east-1 */
    const char *key_file; /* its first line is ACCESS_KEY:SECRET_KEY[:SESSION_TOKEN]; mode 0600 */
    bool is_insecure;     /* http:// is allowed to hosts other than loopback */
    unsigned timeout_ms;  /* of silence, after which a request is tried again; 0: 30 s */
};

struct remote_object {
    const char *key;
    uint64_t size;
    uint64_t modified_ms; /* since 1970, by the clock of the storage */
};

/* Called for each object of a list; the object is valid during the call. Returns 0 to continue, or
 * -errno to stop; it may call the other functions. */
typedef int remote_found_fn(void *context, const struct remote_object *object);

/* Opens a storage. The directory must exist and be writable; an S3 endpoint is not contacted yet.
 * The configuration is copied. */
int remote_open(const struct remote_config *config, struct remote **ret, struct err *err);

/* No call may be under way. Accepts NULL. */
void remote_close(struct remote *remote);

/* Returns where the storage is, for people: "s3://bucket/prefix at https://host" or
 * "file:///dir". */
const char *remote_where(const struct remote *remote);

/* Stores an object, or replaces it; it is durable on return. Fails with CAUSE_NO_SPACE when the
 * storage is full. */
int remote_put(struct remote *remote, const char *key, const void *data, size_t len,
               struct err *err);

/* The same, but fails with ERR_EXISTS if the key has an object. Of two callers at the same moment
 * one wins; S3 servers that ignore If-None-Match let both succeed. If a server's reply is lost, an
 * object with the same bytes counts as the caller's. */
int remote_put_absent(struct remote *remote, const char *key, const void *data, size_t len,
                      struct err *err);

/* Appends an object to a buffer, all of it or, on failure, nothing. Fails with ERR_NOT_FOUND, or
 * with ERR_EXHAUSTED beyond the buffer's limit. */
int remote_get(struct remote *remote, const char *key, struct buf *ret, struct err *err);

/* Returns the size of an object. Fails with ERR_NOT_FOUND. */
int remote_size(struct remote *remote, const char *key, uint64_t *ret, struct err *err);

/* Removes an object. A missing one is no error. */
int remote_remove(struct remote *remote, const char *key, struct err *err);

/* Reports all objects whose keys begin with prefix (any bytes of a key; "": all), in no order.
 * Objects that come or go meanwhile may be missing. Returns what `found` returned if it stopped,
 * with the error untouched. */
int remote_list(struct remote *remote, const char *prefix, remote_found_fn *found, void *context,
                struct err *err);
