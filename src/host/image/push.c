// SPDX-License-Identifier: Apache-2.0
#include "host/image/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "host/core/host.h"
#include "host/core/host_internal.h"
#include "host/core/owned_template.h"
#include "host/image/endpoint.h"
#include "host/image/helper.h"
#include "host/image/login.h"
#include "host/observe/event.h"
#include "store/export/image.h"
#include "store/import/blobs.h"

enum { PUSHES_MAX = 8 };

/* A push under way. */
struct push {
    struct host *host;
    const struct caller *caller;
    const struct image_push *asked;
    struct image_ref ref;
    int images_fd;
    struct image_export image;
    struct image_parts parts;
    char from[IMAGE_REF_MAX +
              1]; /* repository of the registry that has the first layers; "": none */
    struct image_credentials credentials;
    struct image_helper helper;
};

static void push_done(struct push *push)
{
    image_helper_done(&push->helper);
    image_credentials_done(&push->credentials);
    free(push->parts.blobs);
    (void)fd_close(push->images_fd);
}

/* Finds out whether the image below the template is of the same registry. */
static void from_find(struct push *push)
{
    char word[TEMPLATE_WORD_MAX + 1];
    struct image_ref origin;
    const char *name;

    if (!push->image.origin[0])
        return;
    owned_template_word(push->host, push->caller, push->image.origin, word);
    name = image_ref_parse(word, &origin) == 0 && image_ref_is(word) ? word : "";
    if (*name && strcmp(origin.registry, push->ref.registry) == 0 &&
        strcmp(origin.repository, push->ref.repository) != 0)
        (void)snprintf(push->from, sizeof(push->from), "%s", origin.repository);
}

static json_t *blobs_json(const struct push *push)
{
    json_t *list = json_array();

    for (size_t i = 0; i < push->parts.count; i++) {
        const struct image_blob *blob = &push->parts.blobs[i];

        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:I, s:s}", "digest", blob->digest, "size",
                                              (json_int_t)blob->size, "from",
                                              i < push->image.origin_layers ? push->from : ""));
    }
    return list;
}

static int request_send(struct push *push, const json_t *endpoints, struct err *err)
{
    return image_helper_send(
        &push->helper,
        json_pack("{s:s, s:O, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:I}, s:o}", "do", "push",
                  "endpoints", endpoints, "repository", push->ref.repository, "reference",
                  push->ref.tag, "user", push->credentials.user, "password",
                  push->credentials.password.bytes, "type", push->parts.type, "manifest", "digest",
                  push->parts.manifest.digest, "size", (json_int_t)push->parts.manifest.size,
                  "blobs", blobs_json(push)),
        -1, err);
}

/* Only blobs of the image are read for holt-image. */
static bool has_blob(const struct push *push, const char *digest)
{
    bool found = strcmp(push->parts.manifest.digest, digest) == 0;

    for (size_t i = 0; i < push->parts.count; i++)
        found = found || strcmp(push->parts.blobs[i].digest, digest) == 0;
    return found;
}

static int send_handle(struct push *push, const json_t *message, struct err *err)
{
    cleanup_close int fd = -EBADF;
    const char *digest = "";
    int r = json_get_text(message, "digest", &digest, err);

    if (r == 0 && !has_blob(push, digest))
        r = err_set(err, ERR_INTERNAL, "holt-image asked for a blob that is not of the image");
    if (r == 0)
        r = blob_open(push->images_fd, digest, &fd, err);
    return r < 0 ? r : image_helper_send(&push->helper, json_pack("{s:s}", "do", "file"), fd, err);
}

static int progress_handle(struct push *push, const json_t *message, struct err *err)
{
    struct template_progress progress;
    int r = image_helper_progress(message, &progress, err);

    if (r == 0)
        push->asked->progress(&progress, push->asked->context);
    return r;
}

/* Handles one message. Returns 1 after the last one. */
static int message_handle(struct push *push, const json_t *message, struct err *err)
{
    const char *word = "";

    if (json_get_text(message, "do", &word, err) < 0)
        return err_wrap(err, "holt-image");
    if (strcmp(word, "send") == 0)
        return send_handle(push, message, err);
    if (strcmp(word, "progress") == 0)
        return progress_handle(push, message, err);
    if (strcmp(word, "failed") == 0)
        return image_helper_failed(message, err);
    return strcmp(word, "done") == 0
               ? 1
               : err_set(err, ERR_INTERNAL, "holt-image sent a malformed message");
}

static int image_send(struct push *push, const json_t *endpoints, struct err *err)
{
    int r = image_helper_start(&push->helper, err);

    if (r == 0)
        r = request_send(push, endpoints, err);
    while (r == 0) {
        cleanup_json json_t *message = NULL;

        r = image_helper_next(&push->helper, &message, err);
        if (r == 0)
            r = message_handle(push, message, err);
    }
    return r < 0 ? r : 0;
}

static int image_make(struct push *push, const char *store_name, struct err *err)
{
    int r = blobs_open(push->host->store, push->caller->owner, &push->images_fd, err);

    if (r == 0)
        r = image_export(push->host->store, store_name, push->images_fd, &push->image, err);
    fault_point("push.written");
    if (r == 0)
        r = image_parts_read(push->images_fd, push->image.digest, &push->parts, err);
    return r;
}

static int push_run(struct push *push, struct err *err)
{
    const struct image_login_request given = { push->ref.registry, push->asked->user,
                                               push->asked->password };
    cleanup_json json_t *endpoints = NULL;
    struct template_record record;
    uint64_t removed;
    struct err ignored;
    int r = owned_template_find(push->host, push->caller, push->asked->template, &record, err);

    /* The registry is checked before anything is written. */
    if (r == 0)
        r = image_endpoints(push->host->image_config, &push->ref, caller_is_admin(push->caller),
                            &endpoints, err);
    if (r == 0)
        r = image_credentials_find(push->host, push->caller, &given, &push->credentials, err);
    if (r < 0)
        return r;
    r = image_make(push, record.store_name, err);
    if (r == 0) {
        from_find(push);
        r = image_send(push, endpoints, err);
        fault_point("push.sent");
    }
    if (push->images_fd >= 0)
        (void)blobs_prune(push->images_fd, image_config_cache(push->host->image_config), &removed,
                          &ignored);
    if (r < 0)
        return err_wrap(err, "push '%.100s'", push->ref.familiar);
    owner_event(push->host, push->caller->owner, EVENT_TEMPLATE_PUSHED,
                json_pack("{s:s, s:s, s:s}", "template", record.store_name, "image",
                          push->ref.familiar, "digest", push->image.digest));
    return 0;
}

int image_push(struct host *host, const struct caller *caller, const struct image_push *asked,
               char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err)
{
    cleanup_with(push_done) struct push push = { .host = host,
                                                 .caller = caller,
                                                 .asked = asked,
                                                 .images_fd = -EBADF,
                                                 .helper = IMAGE_HELPER_INIT };
    int r;

    if (image_ref_parse(asked->reference, &push.ref) < 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not a reference: [REGISTRY/]REPOSITORY[:TAG]",
                       asked->reference);
    if (push.ref.digest[0])
        return err_set(err, ERR_INVALID, "'%.100s' has a digest: an image is pushed to a tag",
                       asked->reference);
    if (atomic_fetch_add(&host->pushes, 1) >= PUSHES_MAX)
        r = err_set(err, ERR_EXHAUSTED, "%d images are being pushed already: try again later",
                    PUSHES_MAX);
    else
        r = push_run(&push, err);
    atomic_fetch_sub(&host->pushes, 1);
    memcpy(ret_digest, push.image.digest, IMAGE_DIGEST_LEN + 1);
    return r;
}
