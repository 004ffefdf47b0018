// SPDX-License-Identifier: Apache-2.0
/* holtd's end of image/control.h. holt-image has parsed hostile bytes: its messages are bounded, a
 * blob counts only when its digest was computed here, and what the image consists of is read from
 * the verified blobs later. */
#include "host/image/fetch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "image/control.h"
#include "kernel/clone.h"
#include "kernel/fds.h"
#include "runtime/program.h"
#include "store/import/blobs.h"
#include "store/import/image.h"

enum { BLOBS_MAX = 300 };

/* Unpacked, an image is some three times as large as its layers. */
enum { SPACE_FACTOR = 4 };

struct helper {
    const struct image_fetch *fetch;
    int fd;
    int pidfd;
    pid_t pid;
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
    uint64_t bytes; /* of the blobs asked for */
};

static void helper_done(struct helper *helper)
{
    siginfo_t info;

    helper->fd = fd_close(helper->fd);
    for (size_t i = 0; i < helper->blob_count; i++)
        blob_end(helper->fetch->images_fd, &helper->blobs[i]);
    if (helper->pidfd < 0)
        return;
    (void)kill(helper->pid, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED);
    helper->pidfd = fd_close(helper->pidfd);
}

static int helper_start(struct helper *helper, struct err *err)
{
    static char name[] = "holt-image";
    char *const args[] = { name, NULL };
    char *const env[] = { NULL };
    cleanup_close int its = -EBADF, program_fd = -EBADF;
    cleanup_free char *path = NULL;
    int pair[2], r = program_find(name, &path, err);

    if (r < 0)
        return r;
    program_fd = open(path, O_PATH | O_CLOEXEC);
    if (program_fd < 0)
        return err_sys(err, -errno, "open '%s'", path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection to holt-image");
    helper->fd = pair[0];
    its = pair[1];
    r = clone_exec(&(struct clone_exec){ .cgroup_fd = -1,
                                         .program_fd = program_fd,
                                         .args = args,
                                         .env = env,
                                         .fds = &its,
                                         .fd_count = 1 },
                   &helper->pid, &helper->pidfd);
    return r < 0 ? err_sys(err, r, "start '%s'", path) : 0;
}

static int helper_send(struct helper *helper, json_t *message, int fd, struct err *err)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    ssize_t n = text ? fds_send(helper->fd, text, strlen(text), 0, &fd, fd >= 0) : -EINVAL;

    return n < 0 ? err_sys(err, (int)n, "send to holt-image") : 0;
}

static int request_send(struct helper *helper, struct err *err)
{
    const struct image_fetch *fetch = helper->fetch;
    const struct image_ref *ref = fetch->ref;

    return helper_send(helper,
                       json_pack("{s:s, s:O, s:s, s:s, s:s, s:s, s:s}", "do", "pull", "endpoints",
                                 fetch->endpoints, "repository", ref->repository, "reference",
                                 ref->digest[0] ? ref->digest : ref->tag, "arch", image_arch(),
                                 "user", fetch->user, "password", fetch->password),
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
        return helper_send(helper, json_pack("{s:s}", "do", "have"), -1, err);
    helper->blob_count++;
    return helper_send(helper, json_pack("{s:s}", "do", "fetch"), blob->fd, err);
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
        return helper_send(helper, json_pack("{s:s}", "do", r > 0 ? "ok" : "again"), -1, err);
    }
    return r < 0 ? r : err_set(err, ERR_INTERNAL, "holt-image sent a blob that was not asked for");
}

static int progress_handle(struct helper *helper, const json_t *message, struct err *err)
{
    struct template_progress progress = { .bytes = 0 };

    if (json_get_u64(message, "bytes", &progress.source_bytes, err) < 0 ||
        json_get_u64(message, "total", &progress.source_total, err) < 0)
        return err_wrap(err, "holt-image");
    helper->fetch->progress(&progress, helper->fetch->context);
    return 0;
}

static int failed_handle(const json_t *message, struct err *err)
{
    const char *kind = "", *text = "";
    char plain[sizeof(err->msg)];

    if (json_get_text(message, "kind", &kind, err) < 0 ||
        json_get_text(message, "message", &text, err) < 0)
        return err_wrap(err, "holt-image");
    (void)snprintf(plain, sizeof(plain), "%s", text);
    for (char *c = plain; *c; c++)
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
    for (int i = ERR_NONE + 1; i < ERR_KINDS; i++) {
        if (strcmp(err_kind_name((enum err_kind)i), kind) == 0)
            return err_set(err, (enum err_kind)i, "%s", plain);
    }
    return err_set(err, ERR_INTERNAL, "%s", plain);
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
        return failed_handle(message, err);
    if (strcmp(word, "done") != 0 || !image_digest_is(digest))
        return err_set(err, ERR_INTERNAL, "holt-image sent a malformed message");
    memcpy(ret_digest, digest, IMAGE_DIGEST_LEN + 1);
    return 1;
}

static int message_next(struct helper *helper, json_t **ret, struct err *err)
{
    cleanup_free char *text = xcalloc(1, IMAGE_MESSAGE_MAX);
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t n = fds_receive(helper->fd, text, IMAGE_MESSAGE_MAX, 0, fds, &count);

    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "holt-image has ended");
    return json_parse_object(text, (size_t)n, ret, err);
}

int image_fetch(const struct image_fetch *fetch, char ret_digest[static IMAGE_DIGEST_LEN + 1],
                struct err *err)
{
    cleanup_free struct helper *helper = xcalloc(1, sizeof(*helper));
    int r;

    *helper = (struct helper){ .fetch = fetch, .fd = -EBADF, .pidfd = -EBADF };
    r = helper_start(helper, err);
    if (r == 0)
        r = request_send(helper, err);
    while (r == 0) {
        cleanup_json json_t *message = NULL;

        r = message_next(helper, &message, err);
        if (r == 0)
            r = message_handle(helper, message, ret_digest, err);
    }
    helper_done(helper);
    if (r > 0 && fetch->ref->digest[0] && strcmp(fetch->ref->digest, ret_digest) != 0)
        return err_set(err, ERR_INVALID, "the registry sent another image than %.19s",
                       fetch->ref->digest);
    return r < 0 ? r : 0;
}
