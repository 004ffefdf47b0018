// SPDX-License-Identifier: Apache-2.0
/* holt-image: pulls an image from a registry for holtd, pushes one, or checks a login
 * (image/control.h).
 *
 * It parses what registries send, so it has no privileges: no capabilities, the user nobody, and
 * nothing writable but the files that holtd hands to it, one for each blob. holtd verifies each by
 * its digest. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "image/control.h"
#include "image/fetch.h"
#include "image/push.h"
#include "image/session.h"
#include "image/talk.h"
#include "kernel/confine.h"
#include "kernel/fds.h"

#define ACCEPT                                                                                     \
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "        \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.docker.distribution.manifest.v2+json"

enum { MEMORY_MAX = 512 << 20 };

struct pull {
    json_t *request;
    struct endpoint endpoints[ENDPOINTS_MAX];
    size_t endpoint_count;
    const char *repository, *reference, *arch, *user, *password;
    struct session session;
};

/* --- messages --------------------------------------------------------------------------------- */

void talk_send(json_t *message)
{
    cleanup_json json_t *object = message;
    cleanup_free char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    if (!text || fds_send(IMAGE_CONTROL_FD, text, strlen(text), 0, NULL, 0) < 0)
        _exit(1);
}

/* Receives one message, perhaps with a descriptor; -1: none. */
static json_t *message_receive(int *ret_fd)
{
    static char text[IMAGE_MESSAGE_MAX];
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t n = fds_receive(IMAGE_CONTROL_FD, text, sizeof(text), 0, fds, &count);
    json_t *object = NULL;
    struct err err;

    if (n <= 0 || json_parse_object(text, (size_t)n, &object, &err) < 0)
        _exit(1);
    if (ret_fd)
        *ret_fd = count > 0 ? fds[0] : -1;
    return object;
}

int talk_want(const char *digest, uint64_t size)
{
    int fd = -1;

    talk_send(
        json_pack("{s:s, s:s, s:I}", "do", "want", "digest", digest, "size", (json_int_t)size));
    json_decref(message_receive(&fd));
    return fd;
}

int talk_send_of(const char *digest)
{
    int fd = -1;

    talk_send(json_pack("{s:s, s:s}", "do", "send", "digest", digest));
    json_decref(message_receive(&fd));
    return fd;
}

bool talk_got(const char *digest)
{
    cleanup_json json_t *answer = NULL;

    talk_send(json_pack("{s:s, s:s}", "do", "got", "digest", digest));
    answer = message_receive(NULL);
    return strcmp(json_string_value(json_object_get(answer, "do")), "ok") == 0;
}

/* --- pull ------------------------------------------------------------------------------------- */

static int request_read(struct pull *pull, struct err *err)
{
    const json_t *endpoints = NULL, *item;
    size_t i;
    int r = json_get_array(pull->request, "endpoints", &endpoints, err);

    json_array_foreach(endpoints, i, item) {
        struct endpoint *endpoint = &pull->endpoints[pull->endpoint_count];
        const char *url = "";

        if (r < 0 || pull->endpoint_count == ENDPOINTS_MAX)
            break;
        if (json_get_text(item, "url", &url, err) < 0 ||
            json_get_bool(item, "mirror", &endpoint->is_mirror, err) < 0 ||
            json_get_bool(item, "insecure", &endpoint->is_insecure, err) < 0 ||
            json_get_bool(item, "private", &endpoint->is_private, err) < 0)
            return err_wrap(err, "endpoint");
        (void)snprintf(endpoint->url, sizeof(endpoint->url), "%s", url);
        pull->endpoint_count++;
    }
    if (r == 0 && (json_get_text(pull->request, "repository", &pull->repository, err) < 0 ||
                   json_get_text(pull->request, "reference", &pull->reference, err) < 0 ||
                   json_get_text(pull->request, "arch", &pull->arch, err) < 0 ||
                   json_get_text(pull->request, "user", &pull->user, err) < 0 ||
                   json_get_text(pull->request, "password", &pull->password, err) < 0))
        r = err_wrap(err, "request");
    return r;
}

static void digest_of(const struct buf *body, char ret[IMAGE_DIGEST_LEN + 1])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)body->data, body->len, hash);
    (void)snprintf(ret, IMAGE_DIGEST_LEN + 1, "sha256:");
    hex_encode(hash, sizeof(hash), ret + strlen("sha256:"));
}

/* Gives a document to holtd as a blob. */
static int document_store(const struct buf *body, const char *digest, struct err *err)
{
    cleanup_close int fd = talk_want(digest, body->len);
    int r;

    if (fd < 0)
        return 0;
    r = pwrite_all(fd, body->data, body->len, 0);
    if (r < 0)
        return err_sys(err, r, "write the manifest");
    return talk_got(digest) ? 0 : err_set(err, ERR_INTERNAL, "the manifest could not be stored");
}

static int manifest_get(struct pull *pull, const char *reference, struct manifest *manifest,
                        char ret_digest[IMAGE_DIGEST_LEN + 1], struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(MANIFEST_BYTES_MAX);
    char url[URL_MAX];
    int r;

    (void)snprintf(url, sizeof(url), "%s/v2/%s/manifests/%s", pull->session.endpoint.url,
                   pull->repository, reference);
    r = session_get(&pull->session, url, ACCEPT, &body, err);
    if (r < 0)
        return r;
    digest_of(&body, ret_digest);
    if (image_digest_is(reference) && strcmp(reference, ret_digest) != 0)
        return err_set(err, ERR_INVALID, "%s sent another manifest than %.19s",
                       pull->session.endpoint.url, reference);
    r = manifest_parse(body.data ? body.data : "", body.len, pull->arch, manifest, err);
    return r < 0 ? r : document_store(&body, ret_digest, err);
}

static int endpoint_pull(struct pull *pull, struct manifest *manifest,
                         char ret_digest[IMAGE_DIGEST_LEN + 1], struct err *err)
{
    char chosen[IMAGE_DIGEST_LEN + 1], unused[IMAGE_DIGEST_LEN + 1];
    int r = manifest_get(pull, pull->reference, manifest, ret_digest, err);

    if (r == 0 && manifest->chosen[0]) {
        memcpy(chosen, manifest->chosen, sizeof(chosen));
        r = manifest_get(pull, chosen, manifest, unused, err);
    }
    if (r == 0 && manifest->chosen[0])
        r = err_set(err, ERR_INVALID, "the index leads to another index");
    return r;
}

/* Tries the mirrors, then the registry itself. */
static int pull_run(struct pull *pull, char ret_digest[IMAGE_DIGEST_LEN + 1], struct err *err)
{
    cleanup_free struct manifest *manifest = xcalloc(1, sizeof(*manifest));
    int r = err_set(err, ERR_INVALID, "the request has no endpoint");

    for (size_t i = 0; r < 0 && i < pull->endpoint_count; i++) {
        const struct endpoint *endpoint = &pull->endpoints[i];

        pull->session = (struct session){
            .endpoint = *endpoint,
            .user = endpoint->is_mirror ? "" : pull->user,
            .password = endpoint->is_mirror ? "" : pull->password,
        };
        (void)snprintf(pull->session.repository, sizeof(pull->session.repository), "%s",
                       pull->repository);
        r = endpoint_pull(pull, manifest, ret_digest, err);
        if (r == 0)
            r = fetch_blobs(&pull->session, manifest, err);
    }
    return r;
}

/* --- push ------------------------------------------------------------------------------------- */

static int push_blob_read(const json_t *object, struct push_blob *ret, struct err *err)
{
    const char *digest = "";

    ret->from = "";
    if (json_get_text(object, "digest", &digest, err) < 0 ||
        json_get_u64(object, "size", &ret->size, err) < 0 ||
        json_get_text(object, "from", &ret->from, err) < 0)
        return err_wrap(err, "blob");
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    return 0;
}

/* Pushes to the last endpoint, which is the registry itself: mirrors are for reading. */
static int push_run(struct pull *pull, char ret_digest[IMAGE_DIGEST_LEN + 1], struct err *err)
{
    const json_t *blobs = json_object_get(pull->request, "blobs");
    cleanup_free struct push_blob *list = xcalloc(json_array_size(blobs) + 1, sizeof(*list));
    struct push push = { .session = &pull->session,
                         .reference = pull->reference,
                         .type = "",
                         .blobs = list,
                         .count = json_array_size(blobs) };
    int r = push_blob_read(json_object_get(pull->request, "manifest"), &push.manifest, err);

    if (r == 0)
        r = json_get_text(pull->request, "type", &push.type, err);
    for (size_t i = 0; r == 0 && i < push.count; i++)
        r = push_blob_read(json_array_get(blobs, i), &list[i], err);
    if (r < 0 || pull->endpoint_count == 0)
        return err_wrap(err, "request");
    pull->session = (struct session){ .endpoint = pull->endpoints[pull->endpoint_count - 1],
                                      .user = pull->user,
                                      .password = pull->password };
    (void)snprintf(pull->session.repository, sizeof(pull->session.repository), "%s",
                   pull->repository);
    memcpy(ret_digest, push.manifest.digest, IMAGE_DIGEST_LEN + 1);
    return push_image(&push, err);
}

/* --- login ------------------------------------------------------------------------------------ */

/* Registries answer this address to those who may log in. */
static int login_run(struct pull *pull, struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(MANIFEST_BYTES_MAX);
    char url[URL_MAX];

    if (pull->endpoint_count == 0)
        return err_set(err, ERR_INVALID, "the request has no endpoint");
    pull->session = (struct session){ .endpoint = pull->endpoints[pull->endpoint_count - 1],
                                      .user = pull->user,
                                      .password = pull->password };
    (void)snprintf(url, sizeof(url), "%s/v2/", pull->session.endpoint.url);
    return session_get(&pull->session, url, "application/json", &body, err);
}

/* --- start ------------------------------------------------------------------------------------ */

static int request_run(struct pull *pull, char ret_digest[IMAGE_DIGEST_LEN + 1], struct err *err)
{
    const char *word = "";
    int r = json_get_text(pull->request, "do", &word, err);

    if (r < 0)
        return err_wrap(err, "request");
    if (strcmp(word, "login") == 0)
        return login_run(pull, err);
    return strcmp(word, "push") == 0 ? push_run(pull, ret_digest, err)
                                     : pull_run(pull, ret_digest, err);
}

int main(void)
{
    /* Files for names and certificates must stay readable, so there is no root of its own. */
    static const struct confine_privileges kept = { .uid = CONFINE_NOBODY,
                                                    .gid = CONFINE_NOBODY,
                                                    .memory_max = MEMORY_MAX };
    static struct pull pull = {
        .repository = "", .reference = "", .arch = "", .user = "", .password = ""
    };
    char digest[IMAGE_DIGEST_LEN + 1] = "";
    struct err err = { .kind = ERR_NONE };
    int r;

    if (fcntl(IMAGE_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "holt-image is started by holtd\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "holt-image", 0, 0, 0);
    r = confine_privileges(&kept);
    if (r < 0)
        r = err_sys(&err, r, "give up privileges");
    if (r == 0 && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        r = err_sys(&err, -ENOMEM, "start libcurl");
    if (r == 0) {
        pull.request = message_receive(NULL);
        r = request_read(&pull, &err);
    }
    if (r == 0)
        r = request_run(&pull, digest, &err);
    if (r < 0)
        talk_send(json_pack("{s:s, s:s, s:o}", "do", "failed", "kind", err_kind_name(err.kind),
                            "message", json_text(err.msg)));
    else
        talk_send(json_pack("{s:s, s:s}", "do", "done", "digest", digest));
    curl_global_cleanup();
    return r < 0;
}
