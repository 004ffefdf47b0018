// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/metadata.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"

int e2b_token_make(char ret[E2B_TOKEN_SIZE], struct err *err)
{
    int r = random_hex(ret, (E2B_TOKEN_SIZE - 1) / 2);

    return r < 0 ? err_sys(err, r, "get random bytes") : 0;
}

json_t *e2b_metadata_read(struct sandbox *sandbox)
{
    cleanup_free char *text = sandbox_get_metadata(sandbox);
    json_t *metadata = text ? json_loads(text, 0, NULL) : NULL;

    return metadata ? metadata : json_object();
}

int e2b_metadata_print(const json_t *metadata, char **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SANDBOX_METADATA_MAX);

    if (json_write(metadata, &text) < 0)
        return err_set(err, ERR_EXHAUSTED, "the metadata of the sandbox is longer than %d bytes",
                       SANDBOX_METADATA_MAX);
    *ret = xstrdup(text.data);
    return 0;
}

static int metadata_write(struct sandbox *sandbox, const json_t *metadata, struct err *err)
{
    cleanup_free char *text = NULL;
    int r = e2b_metadata_print(metadata, &text, err);

    return r == 0 ? sandbox_set_metadata(sandbox, text, err) : r;
}

int e2b_metadata_change(struct sandbox *sandbox, e2b_metadata_fn change, const void *context,
                        json_t **ret, struct err *err)
{
    /* One lock for all sandboxes: changes are rare and short. */
    static struct lock lock = LOCK_INIT(LOCK_E2B_METADATA);
    cleanup_json json_t *metadata = NULL;
    int r;

    lock_take(&lock);
    metadata = e2b_metadata_read(sandbox);
    r = change(metadata, context, err);
    if (r > 0)
        r = metadata_write(sandbox, metadata, err);
    lock_release(&lock);
    if (r == 0)
        *ret = TAKE_PTR(metadata);
    return r;
}

const char *e2b_metadata_text(const json_t *metadata, const char *field)
{
    return json_string_value(json_object_get(metadata, field));
}

bool e2b_metadata_bool(const json_t *metadata, const char *field)
{
    return json_is_true(json_object_get(metadata, field));
}

bool e2b_metadata_is_open(const json_t *metadata)
{
    return json_is_false(json_object_get(metadata, "secure"));
}
