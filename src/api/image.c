// SPDX-License-Identifier: Apache-2.0
/* Calls of the template service that make images. */
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "api/stream/work_stream.h"
#include "base/access/caller.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/image/push.h"

struct push_stream {
    struct work_stream work;
    struct host *host;
    struct caller caller;
    char *template, *reference, *user, *password;
    char digest[IMAGE_DIGEST_LEN + 1]; /* under the stream's lock */
};

static int push_run(struct work_stream *work, struct err *err)
{
    struct push_stream *push = (struct push_stream *)work;
    const struct image_push asked = {
        .template = push->template,
        .reference = push->reference,
        .user = push->user,
        .password = push->password,
        .progress = work_stream_progress,
        .context = work,
    };
    char digest[IMAGE_DIGEST_LEN + 1];
    int r;

    caller_set_current(&push->caller);
    r = image_push(push->host, &push->caller, &asked, digest, err);
    lock_scope(&work->lock);
    memcpy(push->digest, digest, sizeof(digest));
    return r;
}

static int push_tell(struct work_stream *work, struct buf *out)
{
    const struct msg_import_progress progress = work_stream_message(work);

    return message_add(out, MESSAGE(msg_push_response, .progress = &progress));
}

static int push_finish(struct work_stream *work, struct buf *out)
{
    const struct push_stream *push = (const struct push_stream *)work;
    struct image_ref ref;
    struct msg_pushed_image image = { .reference = push->reference, .digest = push->digest };

    if (image_ref_parse(push->reference, &ref) == 0)
        image.reference = ref.familiar;
    return message_add(out, MESSAGE(msg_push_response, .image = &image));
}

static void push_free(struct work_stream *work)
{
    struct push_stream *push = (struct push_stream *)work;

    work_stream_done(work);
    free(push->template);
    free(push->reference);
    free(push->user);
    wiped_free(push->password);
    free(push);
}

int template_service_push(const struct call *call, const struct msg_push_request *request,
                          struct stream **ret, struct err *err)
{
    static const struct work_ops ops = { "holt-push", push_run, push_tell, push_finish, push_free };
    struct push_stream *push = xcalloc(1, sizeof(*push));
    int r;

    work_stream_init(&push->work, &ops);
    push->host = call->host;
    push->caller = *call->caller;
    push->template = xstrdup(request->name);
    push->reference = xstrdup(request->reference);
    push->user = xstrdup(request->username);
    push->password = xstrdup(request->password);
    r = work_stream_start(&push->work, ret, err);
    if (r < 0)
        push_free(&push->work);
    return r;
}
