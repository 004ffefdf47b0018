// SPDX-License-Identifier: Apache-2.0
#include "remote/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "remote/backend.h"

#define KEY_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const struct remote_ops *const backends[] = { &remote_dir, &remote_s3 };

bool remote_key_is(const char *text)
{
    if (strlen(text) > REMOTE_KEY_MAX)
        return false;
    for (const char *part = text;; part++) {
        size_t len = strspn(part, KEY_BYTES);

        if (len == 0 || len > REMOTE_PART_MAX || (len == 1 && *part == '.') ||
            (len == 2 && strncmp(part, "..", 2) == 0))
            return false;
        part += len;
        if (*part == '\0')
            return true;
        if (*part != '/')
            return false;
    }
}

static int key_check(const char *key, struct err *err)
{
    if (!remote_key_is(key))
        return err_set(err, ERR_INVALID, "'%.80s' is no key of an object", key);
    return 0;
}

/* A prefix ends anywhere in a key, also behind a slash or a dot. */
static int prefix_check(const char *prefix, struct err *err)
{
    cleanup_free char *key = xasprintf("%s-", prefix);

    if (!remote_key_is(key))
        return err_set(err, ERR_INVALID, "'%.80s' is no prefix of keys", prefix);
    return 0;
}

int remote_open(const struct remote_config *config, struct remote **ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        const struct remote_ops *ops = backends[i];
        size_t len = strlen(ops->scheme);
        struct remote *remote;
        int r;

        if (strncmp(config->url, ops->scheme, len) != 0)
            continue;
        remote = xcalloc(1, ops->size);
        remote->ops = ops;
        r = ops->open(remote, config, config->url + len, err);
        if (r < 0) {
            remote_close(remote);
            return r;
        }
        *ret = remote;
        return 0;
    }
    return err_set(err, ERR_INVALID, "'%.80s' is no storage: use file:///DIRECTORY or s3://BUCKET",
                   config->url);
}

void remote_close(struct remote *remote)
{
    if (!remote)
        return;
    remote->ops->close(remote);
    free(remote->where);
    free(remote);
}

const char *remote_where(const struct remote *remote)
{
    return remote->where;
}

static int object_put(struct remote *remote, const struct remote_put *put, struct err *err)
{
    int r = key_check(put->key, err);

    if (r == 0 && put->len > REMOTE_OBJECT_MAX)
        r = err_set(err, ERR_EXHAUSTED, "object '%s' has %zu bytes; %d are the limit", put->key,
                    put->len, REMOTE_OBJECT_MAX);
    return r < 0 ? r : remote->ops->put(remote, put, err);
}

int remote_put(struct remote *remote, const char *key, const void *data, size_t len,
               struct err *err)
{
    return object_put(remote, &(struct remote_put){ .key = key, .data = data, .len = len }, err);
}

int remote_put_absent(struct remote *remote, const char *key, const void *data, size_t len,
                      struct err *err)
{
    return object_put(
        remote, &(struct remote_put){ .key = key, .data = data, .len = len, .is_absent = true },
        err);
}

int remote_get(struct remote *remote, const char *key, struct buf *ret, struct err *err)
{
    int r = key_check(key, err);

    return r < 0 ? r : remote->ops->get(remote, key, ret, err);
}

int remote_size(struct remote *remote, const char *key, uint64_t *ret, struct err *err)
{
    int r = key_check(key, err);

    return r < 0 ? r : remote->ops->size_of(remote, key, ret, err);
}

int remote_remove(struct remote *remote, const char *key, struct err *err)
{
    int r = key_check(key, err);

    return r < 0 ? r : remote->ops->remove(remote, key, err);
}

int remote_list(struct remote *remote, const char *prefix, remote_found_fn *found, void *context,
                struct err *err)
{
    int r = prefix_check(prefix, err);

    if (r < 0)
        return r;
    return remote->ops->list(
        remote, &(struct remote_list){ .prefix = prefix, .found = found, .context = context }, err);
}
