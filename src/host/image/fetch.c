// SPDX-License-Identifier: Apache-2.0
/* holtd's end of image/control.h. holt-image has parsed hostile bytes: its messages are bounded, a
 * blob counts only when its digest was computed here, and what the image consists of is read from
 * the verified blobs later. */
#include "host/image/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/image/helper.h"
#include "store/import/blobs.h"
#include "store/import/image.h"

enum { BLOBS_MAX = 300 };

/* Unpacked, an image is some three times as large as its layers. */
enum { SPACE_FACTOR = 4 };

struct helper {
    const struct image_fetch *fetch;
    struct image_helper process;
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
    uint64_t bytes; /* of the blobs asked for */
};

static void helper_done(struct helper *helper)
{
    image_helper_done(&helper->process);
    for (size_t i = 0; i < helper->blob_count; i++)
        blob_end(helper->fetch->images_fd, &helper->blobs[i]);
}

static int request_send(struct helper *helper, struct err *err)
{
    const struct image_fetch *fetch = helper->fetch;
    const struct image_ref *ref = fetch->ref;

    return image_helper_send(&helper->process,
                             json_pack("{s:s, s:O, s:s, s:s, s:s, s:s, s:s}", "do", "pull",
                                       "endpoints", fetch->endpoints, "repository", ref->repository,
                                       "reference", ref->digest[0] ? ref->digest : ref->tag, "arch",
                                       image_arch(), "user", fetch->user, "password",
                                       fetch->password),
                             -1, err);
}

/* --- messages of holt-image ------------------------------------------------------------------- */

static int want_handle(struct helper *helper, const json_t *message, struct err *err)
{
    struct blob *blob = &helper->blobs[helper->blob_count];
    const char *digest = "";
    uint64_t size = 0;
    int r;

    if (json_get_text(message, "digest", &digest, err) < 0 ||
        json_get_u64(message, "size", &size, err) < 0)
        return err_wrap(err, "holt-image");
    if (helper->blob_count == BLOBS_MAX || size > helper->fetch->bytes_max - helper->bytes)
        return err_set(err, ERR_EXHAUSTED, "the image is larger than %" PRIu64 " bytes",
                       helper->fetch->bytes_max);
    helper->bytes += size;
    r = blob_begin(helper->fetch->images_fd, digest,
                   size < UINT64_MAX / SPACE_FACTOR ? size * SPACE_FACTOR : size, blob, err);
    if (r < 0)
        return r;
    if (blob->fd < 0)
        return image_helper_send(&helper->process, json_pack("{s:s}", "do", "have"), -1, err);
    helper->blob_count++;
    return image_helper_send(&helper->process, json_pack("{s:s}", "do", "fetch"), blob->fd, err);
}

static int got_handle(struct helper *helper, const json_t *message, struct err *err)
{
    const char *digest = "";
    int r = json_get_text(message, "digest", &digest, err);

    for (size_t i = 0; r == 0 && i < helper->blob_count; i++) {
        struct blob *blob = &helper->blobs[i];

        if (blob->fd < 0 || strcmp(blob->digest, digest) != 0)
            continue;
        r = blob_accept(helper->fetch->images_fd, blob, err);
        if (r < 0)
            return r;
        return image_helper_send(&helper->process, json_pack("{s:s}", "do", r > 0 ? "ok" : "again"),
                                 -1, err);
    }
    return r < 0 ? r : err_set(err, ERR_INTERNAL, "holt-image sent a blob that was not asked for");
}

static int progress_handle(struct helper *helper, const json_t *message, struct err *err)
{
    struct template_progress progress;
    int r = image_helper_progress(message, &progress, err);

    if (r == 0)
        helper->fetch->progress(&progress, helper->fetch->context);
    return r;
}

/* Handles one message. Returns 1 after the last one. */
static int message_handle(struct helper *helper, const json_t *message,
                          char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err)
{
    const char *word = "", *digest = "";

    if (json_get_text(message, "do", &word, err) < 0 ||
        (strcmp(word, "done") == 0 && json_get_text(message, "digest", &digest, err) < 0))
        return err_wrap(err, "holt-image");
    if (strcmp(word, "want") == 0)
        return want_handle(helper, message, err);
    if (strcmp(word, "got") == 0)
        return got_handle(helper, message, err);
    if (strcmp(word, "progress") == 0)
        return progress_handle(helper, message, err);
    if (strcmp(word, "failed") == 0)
        return image_helper_failed(message, err);
    if (strcmp(word, "done") != 0 || !image_digest_is(digest))
        return err_set(err, ERR_INTERNAL, "holt-image sent a malformed message");
    memcpy(ret_digest, digest, IMAGE_DIGEST_LEN + 1);
    return 1;
}

int image_fetch(const struct image_fetch *fetch, char ret_digest[static IMAGE_DIGEST_LEN + 1],
                struct err *err)
{
    cleanup_free struct helper *helper = xcalloc(1, sizeof(*helper));
    int r;

    *helper = (struct helper){ .fetch = fetch, .process = IMAGE_HELPER_INIT };
    r = image_helper_start(&helper->process, err);
    if (r == 0)
        r = request_send(helper, err);
    while (r == 0) {
        cleanup_json json_t *message = NULL;

        r = image_helper_next(&helper->process, &message, err);
        if (r == 0)
            r = message_handle(helper, message, ret_digest, err);
    }
    helper_done(helper);
    if (r > 0 && fetch->ref->digest[0] && strcmp(fetch->ref->digest, ret_digest) != 0)
        return err_set(err, ERR_INVALID, "the registry sent another image than %.19s",
                       fetch->ref->digest);
    return r < 0 ? r : 0;
}
