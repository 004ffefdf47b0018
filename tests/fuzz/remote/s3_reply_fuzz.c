// SPDX-License-Identifier: Apache-2.0
/* Bodies of S3 replies from anywhere: no list, or one whose keys are keys; and errors. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "remote/s3_internal.h"

enum { BODY_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int found_check(void *context, const struct remote_object *object)
{
    size_t *left = context;

    assert(remote_key_is(object->key) && strncmp(object->key, "a", 1) == 0);
    return --*left == 0 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(BODY_MAX);
    cleanup_free char *token = NULL;
    size_t left = 3;
    const struct remote_list list = { .prefix = "a", .found = found_check, .context = &left };
    struct s3_reply reply = { .status = 400 };
    bool has_stopped = false;
    int r;

    if (buf_add(&body, data, size) < 0)
        return 0;
    r = s3_page_read(&body, "p/", &list, &token, &has_stopped);
    assert(has_stopped ? r == -1 && left == 0 : r == 0 || !token);
    assert(!token || *token);
    s3_reply_read(&reply, &body);
    assert(strlen(reply.code) < sizeof(reply.code) && strlen(reply.region) < sizeof(reply.region));
    return 0;
}
