// SPDX-License-Identifier: Apache-2.0
/* Calls of the template service that make images: push and build. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/service.h"
#include "api/stream/work_stream.h"
#include "base/access/caller.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "builder/dockerfile/build.h"
#include "host/core/host.h"
#include "host/image/push.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox.h"
#include "wire/file.h"

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
    static const struct work_ops ops = { "holt-push", push_run, push_tell,
                                         push_finish, NULL,     push_free };
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

/* --- build ------------------------------------------------------------------------------------ */

enum { LINES_MAX = BUILD_LOGS_MAX };

struct build_stream {
    struct work_stream work;
    struct host *host;
    struct caller caller;
    struct msg_build_template_request request; /* its texts are in the arena */
    struct arena arena;
    json_t *args;
    struct sandbox *context; /* NULL: none */
    atomic_bool is_cancelled;
    struct template_record record;
    struct template_info info;

    char **lines; /* of the log that were not sent yet; under the stream's lock */
    size_t line_count;
};

static void build_log_take(void *context, const char *line)
{
    struct build_stream *build = context;

    lock_scope(&build->work.lock);
    if (build->line_count == LINES_MAX)
        return;
    build->lines = xreallocarray(build->lines, build->line_count + 1, sizeof(*build->lines));
    build->lines[build->line_count++] = xstrdup(line);
}

static int build_run_all(struct work_stream *work, struct err *err)
{
    struct build_stream *build = (struct build_stream *)work;
    const struct msg_build_template_request *request = &build->request;
    const struct dockerfile_build asked = {
        .caller = &build->caller,
        .text = request->dockerfile,
        .name = request->name,
        .target = request->target,
        .args = build->args,
        .context = build->context,
        .context_path = *request->path ? request->path : FILE_WORKSPACE,
        .is_forced = request->no_cache,
        .is_cancelled = &build->is_cancelled,
        .log = build_log_take,
        .log_context = build,
    };

    caller_set_current(&build->caller);
    return dockerfile_build(build->host, &asked, &build->record, &build->info, err);
}

/* Sends the new lines of the log, with the template in the last message. */
static int build_add(struct build_stream *build, const struct msg_template *template,
                     struct buf *out)
{
    int r = message_add(out, MESSAGE(msg_build_template_response,
                                     .lines = (const char *const *)build->lines,
                                     .lines_count = build->line_count, .template = template));

    for (size_t i = 0; i < build->line_count; i++)
        free(build->lines[i]);
    build->line_count = 0;
    return r;
}

static int build_tell(struct work_stream *work, struct buf *out)
{
    return build_add((struct build_stream *)work, NULL, out);
}

static int build_finish(struct work_stream *work, struct buf *out)
{
    struct build_stream *build = (struct build_stream *)work;
    const struct msg_template template = owned_template_message(&build->record, &build->info);

    return build_add(build, &template, out);
}

static void build_stop(struct work_stream *work)
{
    atomic_store(&((struct build_stream *)work)->is_cancelled, true);
}

static void build_stream_free(struct work_stream *work)
{
    struct build_stream *build = (struct build_stream *)work;

    work_stream_done(work);
    sandbox_unref(build->context);
    for (size_t i = 0; i < build->line_count; i++)
        free(build->lines[i]);
    free(build->lines);
    json_decref(build->args);
    arena_done(&build->arena);
    free(build);
}

static void request_copy(struct build_stream *build,
                         const struct msg_build_template_request *request)
{
    build->request = *request;
    build->request.name = arena_copy_text(&build->arena, request->name);
    build->request.dockerfile = arena_copy_text(&build->arena, request->dockerfile);
    build->request.path = arena_copy_text(&build->arena, request->path);
    build->request.target = arena_copy_text(&build->arena, request->target);
}

int template_service_build(const struct call *call,
                           const struct msg_build_template_request *request, struct stream **ret,
                           struct err *err)
{
    static const struct work_ops ops = { "holt-build", build_run_all, build_tell,
                                         build_finish, build_stop,    build_stream_free };
    struct build_stream *build = xcalloc(1, sizeof(*build));
    int r = 0;

    work_stream_init(&build->work, &ops);
    build->arena = (struct arena)ARENA_INIT(MESSAGE_BYTES_MAX);
    build->host = call->host;
    build->caller = *call->caller;
    build->args = json_deep_copy(json_field(call->message, "args"));
    request_copy(build, request);
    if (*request->sandbox_id)
        r = sandbox_find(call->host, call->caller, request->sandbox_id, &build->context, err);
    if (r == 0)
        r = work_stream_start(&build->work, ret, err);
    if (r < 0)
        build_stream_free(&build->work);
    return r;
}
