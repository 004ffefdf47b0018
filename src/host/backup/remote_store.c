// SPDX-License-Identifier: Apache-2.0
#include "host/backup/remote_store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/secret/seal.h"
#include "remote/remote.h"

#define HOST_FILE "host-id"
#define PROBE_KEY "holt/probe" /* never has an object: the answer is that there is none */

_Static_assert((int)SEAL_KEY_BYTES == (int)ARCHIVE_KEY_LEN, "one format of key files");

struct remote_store {
    char *url, *endpoint, *region, *key_file, *encrypt;
    struct remote_config config; /* of the texts above */

    struct lock lock;       /* protects everything below */
    struct remote *storage; /* NULL: not open */
    bool has_key;
    struct seal_key key;
    char host[REMOTE_HOST_LEN + 1];
    char (*owners)[OWNER_NAME_MAX + 1]; /* whose markers of an earlier daemon were removed */
    size_t owner_count;

    atomic_bool is_usable;
};

struct remote_store *remote_store_new(const struct config *config)
{
    struct remote_store *remote = xcalloc(1, sizeof(*remote));

    remote->url = xstrdup(config->remote_url);
    remote->endpoint = xstrdup(config->remote_endpoint);
    remote->region = xstrdup(config->remote_region);
    remote->key_file = xstrdup(config->remote_key_file);
    remote->encrypt = xstrdup(config->remote_encrypt);
    remote->config = (struct remote_config){
        .url = remote->url,
        .endpoint = remote->endpoint,
        .region = remote->region,
        .key_file = remote->key_file,
        .is_insecure = config->remote_insecure != 0,
        .timeout_ms = config->remote_timeout < UINT32_MAX ? (unsigned)config->remote_timeout : 0,
    };
    lock_init(&remote->lock, LOCK_REMOTE_STORE);
    return remote;
}

void remote_store_free(struct remote_store *remote)
{
    if (!remote)
        return;
    remote_close(remote->storage);
    explicit_bzero(&remote->key, sizeof(remote->key));
    lock_destroy(&remote->lock);
    free(remote->owners);
    free(remote->url);
    free(remote->endpoint);
    free(remote->region);
    free(remote->key_file);
    free(remote->encrypt);
    free(remote);
}

bool remote_store_is_set(const struct host *host)
{
    return host->remote->url[0];
}

bool remote_store_is_usable(const struct host *host)
{
    return atomic_load(&host->remote->is_usable);
}

/* Reads the key that seals archives, or makes it if it may. */
static int key_load(struct remote_store *remote, bool makes_it, struct err *err)
{
    cleanup_free char *dir = xstrdup(remote->encrypt), *file = xstrdup(remote->encrypt);
    const char *name = basename(file);
    cleanup_close int dir_fd = -EBADF;
    int r;

    if (!remote->encrypt[0])
        return 0;
    dir_fd = open(dirname(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_sys(err, -errno, "open the directory of the key '%s'", remote->encrypt);
    r = seal_key_read(dir_fd, name, &remote->key, err);
    if (r < 0 && r != -ENOENT) {
        (void)err_set(err, ERR_INVALID,
                      "remote.encrypt: '%s' is no key of 64 hexadecimal digits that only its owner "
                      "can read",
                      remote->encrypt);
        return err_remedy(err, "restore the file with mode 0600 from the copy that you have kept");
    }
    if (r == -ENOENT && !makes_it)
        return 0;
    if (r == -ENOENT)
        r = seal_key_make(dir_fd, name, &remote->key, err);
    if (r < 0)
        return err_set(err, ERR_INTERNAL, "remote.encrypt: the key '%s' cannot be written",
                       remote->encrypt);
    remote->has_key = true;
    return 0;
}

/* The name by which other hosts know this one is made once for each state directory. */
static int host_name_load(struct remote_store *remote, int state_fd, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(sizeof(remote->host));
    int r = file_read_at(state_fd, HOST_FILE, &text);

    if (r >= 0 && text.len == REMOTE_HOST_LEN && is_handle(text.data, REMOTE_HOST_LEN)) {
        memcpy(remote->host, text.data, REMOTE_HOST_LEN + 1);
        return 0;
    }
    if (r < 0 && r != -ENOENT)
        return err_sys(err, r, "read '%s' in the state directory", HOST_FILE);
    r = random_hex(remote->host, REMOTE_HOST_LEN / 2);
    if (r == 0)
        r = file_replace_at(state_fd, HOST_FILE, remote->host, REMOTE_HOST_LEN);
    if (r < 0)
        remote->host[0] = '\0';
    return r < 0 ? err_sys(err, r, "write '%s' in the state directory", HOST_FILE) : 0;
}

/* Locked. */
static int storage_open(struct remote_store *remote, int state_fd, struct err *err)
{
    int r = 0;

    if (remote->storage)
        return 0;
    if (!remote->url[0]) {
        (void)err_set(err, ERR_UNSUPPORTED, "this host has no object storage");
        return err_remedy(err, "set remote.url in holt.conf(5)");
    }
    if (!remote->host[0])
        r = host_name_load(remote, state_fd, err);
    if (r == 0 && !remote->has_key)
        r = key_load(remote, true, err);
    return r < 0 ? r : remote_open(&remote->config, &remote->storage, err);
}

/* Locked. */
static bool owner_is_known(const struct remote_store *remote, const char *owner)
{
    for (size_t i = 0; i < remote->owner_count; i++)
        if (strcmp(remote->owners[i], owner) == 0)
            return true;
    return false;
}

/* Locked. Removes the markers that an earlier daemon has left, before the first use for an owner:
 * they would keep everybody from collecting chunks. */
static int owner_prepare(struct remote_store *remote, const struct archive_store *store,
                         struct err *err)
{
    int r;

    if (owner_is_known(remote, store->owner))
        return 0;
    r = archive_forget_markers(store, err);
    if (r < 0)
        return r;
    remote->owners =
        xreallocarray(remote->owners, remote->owner_count + 1, sizeof(*remote->owners));
    (void)snprintf(remote->owners[remote->owner_count++], OWNER_NAME_MAX + 1, "%s", store->owner);
    return 0;
}

int remote_store_open(struct host *host, const char *owner, struct archive_store *ret,
                      struct err *err)
{
    struct remote_store *remote = host->remote;
    lock_scope(&remote->lock);
    int r = storage_open(remote, host->state_fd, err);

    if (r < 0)
        return r;
    *ret = (struct archive_store){
        .remote = remote->storage,
        .owner = owner,
        .key = remote->has_key ? remote->key.bytes : NULL,
        .host = remote->host,
    };
    return owner_prepare(remote, ret, err);
}

/* Asks for an object that does not exist. */
static int storage_ask(struct remote *storage, struct err *err)
{
    uint64_t size;
    int r = remote_size(storage, PROBE_KEY, &size, err);

    if (r == 0 || err->kind != ERR_NOT_FOUND)
        return r;
    *err = (struct err){ 0 };
    return 0;
}

int remote_store_check(struct host *host, struct err *err)
{
    struct remote_store *remote = host->remote;
    struct remote *storage;
    int r;

    lock_take(&remote->lock);
    r = storage_open(remote, host->state_fd, err);
    storage = remote->storage;
    lock_release(&remote->lock);
    if (r == 0)
        r = storage_ask(storage, err);
    atomic_store(&remote->is_usable, r == 0);
    return r;
}

int remote_store_probe(const struct config *config, struct err *err)
{
    struct remote_store *remote = remote_store_new(config);
    int r = 1;

    if (remote->url[0]) {
        r = key_load(remote, false, err);
        if (r == 0)
            r = remote_open(&remote->config, &remote->storage, err);
        if (r == 0)
            r = storage_ask(remote->storage, err);
    }
    remote_store_free(remote);
    return r;
}
