/* Archives: streams of bytes in object storage, cut into chunks that the archives of one owner
 * share.
 *
 * What an owner has in the storage:
 *   OWNER/chunks/HH/HEX     a part of a stream, of 1 byte to 4 MiB, under the hash of its content
 *   OWNER/archives/NAME     the list of an archive's chunks, in their order
 *   OWNER/markers/...       who writes or collects now
 * Objects are compressed (zstd); remote/archive/object.h has their form, list.h that of lists,
 * marker.h the rules of writers and collectors on several hosts.
 *
 * With a key, objects are sealed with AES-256-GCM, and the hashes of chunks are keyed (HMAC); all
 * keys are derived from the owner's name too. The storage still sees the names of owners and
 * archives, the sizes of chunks, and which of one owner's archives share some. A list is bound to
 * its owner and name, a chunk to its identity, and so to its position in a list: what is damaged,
 * exchanged, cut off or from another place is refused. An older list of the very same name is not:
 * names should not be used twice.
 *
 * Any thread may call any function; one writer is used by one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct remote;

enum { ARCHIVE_KEY_LEN = 32, ARCHIVE_NAME_MAX = 200, ARCHIVE_DESCRIPTION_MAX = 64 * 1024 };

/* One owner's archives. The texts and the key stay as they are until the writers are closed. */
struct archive_store {
    struct remote *remote;
    const char *owner;  /* a part of a key of remote storage, of at most 128 bytes */
    const uint8_t *key; /* ARCHIVE_KEY_LEN bytes that seal chunks; NULL: they are only compressed */
    const char *host;   /* names this host in its markers, so that it finds them after a crash */
};

struct archive_info {
    const char *name;        /* parts with slashes, like keys of remote.h */
    uint64_t size;           /* bytes of the stream; at most 1 TiB */
    uint64_t stored;         /* bytes of the objects that this archive added, without its list */
    uint64_t created_ms;     /* wall-clock time */
    const char *description; /* a small text of the caller, stored in the list; "" if none */
    bool is_damaged;         /* of archive_list only: nothing but the name can be read */
};

/* Called with parts of the stream. Returns 0 or -errno, which stops the read. */
typedef int archive_data_fn(void *context, const void *data, size_t len);

/* Called with one archive, which is valid during the call. Returns 0 or -errno, which stops. */
typedef int archive_found_fn(void *context, const struct archive_info *info);

struct archive_writer;

/* Begins a stream. Nobody sees an archive before archive_writer_finish. Waits a few seconds for an
 * archive_collect to stop, then fails with ERR_BUSY. */
int archive_writer_open(const struct archive_store *store, struct archive_writer **ret,
                        struct err *err);

/* Returns before the data is stored. After a failure all calls fail alike. */
int archive_write(struct archive_writer *writer, const void *data, size_t len, struct err *err);

/* Waits until every chunk, also of those that were there already, was read back and compared with
 * what was written, then stores the list of chunks under a name and reads that back: an archive
 * that is reported is whole. Fails with ERR_EXISTS if the name is taken. ret may be NULL; its texts
 * are freed by archive_info_done. */
int archive_writer_finish(struct archive_writer *writer, const char *name, const char *description,
                          struct archive_info *ret, struct err *err);

/* Ends a writer. The chunks of an unfinished stream go with the next archive_collect. Accepts
 * NULL. */
void archive_writer_close(struct archive_writer *writer);

/* Passes the stream to a function, in order; each chunk was verified before. Returns what `data`
 * returned if it stopped, with the error untouched. */
int archive_read(const struct archive_store *store, const char *name, archive_data_fn *data,
                 void *context, struct err *err);

/* ERR_NOT_FOUND if there is none. The texts of ret are freed by archive_info_done. */
int archive_find(const struct archive_store *store, const char *name, struct archive_info *ret,
                 struct err *err);
void archive_info_done(struct archive_info *info);

/* Reports the archives whose names begin with prefix, in no order. Returns what `found` returned if
 * it stopped, with the error untouched. */
int archive_list(const struct archive_store *store, const char *prefix, archive_found_fn *found,
                 void *context, struct err *err);

/* Removes an archive; its chunks go with the next archive_collect. A missing one is no error. */
int archive_remove(const struct archive_store *store, const char *name, struct err *err);

/* What archive_collect did. */
struct archive_collected {
    uint64_t objects, bytes;
};

/* Removes chunks that no archive lists. Fails with ERR_BUSY while somebody, on any host, writes an
 * archive of this owner, also when a writer comes meanwhile; and removes nothing if a list cannot
 * be read, as its chunks are unknown. Reads all lists; owners whose archives have over 15 Mi
 * different chunks are refused.
 */
int archive_collect(const struct archive_store *store, struct archive_collected *ret,
                    struct err *err);

/* Removes the markers that this host has left in a crash. To be called at start, before any other
 * call. */
int archive_forget_markers(const struct archive_store *store, struct err *err);
