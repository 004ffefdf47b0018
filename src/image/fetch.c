// SPDX-License-Identifier: Apache-2.0
#include "image/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "image/session.h"
#include "image/talk.h"

enum { PARALLEL = 4, WAIT_MS = 100, REPORT_MS = 200, AGAIN_MAX = 2 };

/* One blob on its way. */
struct transfer {
    struct fetch *fetch;
    const struct manifest_blob *blob;
    int fd;
    uint64_t done;   /* bytes in the file */
    bool is_checked; /* the reply was looked at before its first byte was written */
    bool is_over;
    unsigned tries, agains, logins;
    uint64_t not_before_ms;
    CURL *easy; /* NULL: it waits */
    struct curl_slist *headers;
};

struct fetch {
    struct session *session;
    CURLM *multi;
    struct transfer *transfers;
    size_t count, running;
    uint64_t total, reported_ms;
    int write_error; /* of a file */
};

static void transfer_stop(struct transfer *transfer)
{
    if (!transfer->easy)
        return;
    (void)curl_multi_remove_handle(transfer->fetch->multi, transfer->easy);
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    transfer->easy = NULL;
    transfer->headers = NULL;
    transfer->fetch->running--;
}

static void fetch_done(struct fetch *fetch)
{
    for (size_t i = 0; i < fetch->count; i++) {
        transfer_stop(&fetch->transfers[i]);
        (void)fd_close(fetch->transfers[i].fd);
    }
    free(fetch->transfers);
    (void)curl_multi_cleanup(fetch->multi);
}

static void report(struct fetch *fetch)
{
    uint64_t bytes = 0, now_ms = clock_ms();

    if (now_ms < fetch->reported_ms + REPORT_MS)
        return;
    fetch->reported_ms = now_ms;
    for (size_t i = 0; i < fetch->count; i++)
        bytes += fetch->transfers[i].done;
    talk_send(json_pack("{s:s, s:I, s:I}", "do", "progress", "bytes", (json_int_t)bytes, "total",
                        (json_int_t)fetch->total));
}

static int file_empty(struct transfer *transfer)
{
    transfer->done = 0;
    return ftruncate(transfer->fd, 0) < 0 ? -errno : 0;
}

/* A server may ignore the range and send everything, or send an error as a body. */
static bool reply_is_wanted(struct transfer *transfer)
{
    long status = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 206)
        return false;
    if (!transfer->is_checked && status == 200 && transfer->done > 0)
        transfer->fetch->write_error = file_empty(transfer);
    transfer->is_checked = true;
    return true;
}

static size_t bytes_take(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    size_t len = size * count;
    int r;

    if (!reply_is_wanted(transfer))
        return len; /* dropped; the status tells what happened */
    if (len > transfer->blob->size - transfer->done) {
        transfer->fetch->write_error = -EFBIG;
        return 0;
    }
    r = pwrite_all(transfer->fd, data, len, (off_t)transfer->done);
    if (r < 0) {
        transfer->fetch->write_error = r;
        return 0;
    }
    transfer->done += len;
    return len;
}

static int transfer_start(struct transfer *transfer, struct err *err)
{
    struct session *session = transfer->fetch->session;
    char url[URL_MAX], range[32];

    (void)snprintf(url, sizeof(url), "%s/v2/%s/blobs/%s", session->endpoint.url,
                   session->repository, transfer->blob->digest);
    transfer->easy = curl_easy_init();
    if (!transfer->easy)
        return err_sys(err, -ENOMEM, "make a request");
    transfer->fetch->running++;
    transfer->is_checked = false;
    session_prepare(session, transfer->easy, url, "*/*", &transfer->headers);
    if (transfer->done > 0) {
        (void)snprintf(range, sizeof(range), "%" PRIu64 "-", transfer->done);
        (void)curl_easy_setopt(transfer->easy, CURLOPT_RANGE, range);
    }
    (void)curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, bytes_take);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    (void)curl_multi_add_handle(transfer->fetch->multi, transfer->easy);
    return 0;
}

/* All bytes are there: holtd verifies them. */
static int transfer_hand_over(struct transfer *transfer, struct err *err)
{
    transfer_stop(transfer);
    transfer->is_over = talk_got(transfer->blob->digest);
    if (transfer->is_over)
        return 0;
    transfer->done = 0;
    if (++transfer->agains >= AGAIN_MAX)
        return err_set(err, ERR_INVALID, "blob %.19s is damaged in the registry",
                       transfer->blob->digest);
    return 0;
}

static int file_explain(const struct transfer *transfer, struct err *err)
{
    if (transfer->fetch->write_error == -EFBIG)
        return err_set(err, ERR_INVALID, "blob %.19s is longer than the manifest says",
                       transfer->blob->digest);
    if (transfer->fetch->write_error == -ENOSPC || transfer->fetch->write_error == -EDQUOT)
        return err_set(err, ERR_EXHAUSTED, "no space left on the disk of the state directory");
    return err_sys(err, transfer->fetch->write_error, "write blob %.19s", transfer->blob->digest);
}

/* The end of one request for a blob: it is complete, is tried again later, or the pull fails. */
static int transfer_end(struct transfer *transfer, CURLcode code, struct err *err)
{
    struct session *session = transfer->fetch->session;
    long status = 0;
    unsigned pause_ms;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->fetch->write_error < 0)
        return file_explain(transfer, err);
    if (code == CURLE_OK && transfer->done == transfer->blob->size &&
        (status == 200 || status == 206))
        return transfer_hand_over(transfer, err);
    if (code == CURLE_OK && status == 401 && transfer->logins++ == 0) {
        int r = session_authorize(session, transfer->easy, err);

        transfer_stop(transfer);
        return r;
    }
    if (code == CURLE_OK && (status == 200 || status == 206))
        code = CURLE_PARTIAL_FILE; /* shorter than the manifest says */
    if (code == CURLE_OK && status == 416 && file_empty(transfer) == 0)
        code = CURLE_RANGE_ERROR;
    pause_ms = session_pause_ms(session, transfer->easy, code, status, transfer->tries++);
    if (pause_ms == 0 && code == CURLE_PARTIAL_FILE)
        return err_set(err, ERR_UNAVAILABLE,
                       "blob %.19s ends after %" PRIu64 " of %" PRIu64 " bytes",
                       transfer->blob->digest, transfer->done, transfer->blob->size);
    if (pause_ms == 0) {
        (void)session_explain(session, code, status, err);
        return err_wrap(err, "blob %.19s", transfer->blob->digest);
    }
    transfer->not_before_ms = clock_ms() + pause_ms;
    transfer_stop(transfer);
    return 0;
}

static int ended_take(struct fetch *fetch, struct err *err)
{
    CURLMsg *message;
    int left = 0, r = 0;

    while (r == 0 && (message = curl_multi_info_read(fetch->multi, &left))) {
        struct transfer *transfer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        r = transfer_end(transfer, message->data.result, err);
    }
    return r;
}

/* Starts what is due. Returns 1 if all is over, 0, or a negative errno. */
static int due_start(struct fetch *fetch, struct err *err)
{
    size_t over = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < fetch->count; i++) {
        struct transfer *transfer = &fetch->transfers[i];

        if (!transfer->is_over && !transfer->easy && transfer->done == transfer->blob->size)
            r = transfer_hand_over(transfer, err); /* an earlier pull got all of it */
        if (r == 0 && !transfer->is_over && !transfer->easy && fetch->running < PARALLEL &&
            clock_ms() >= transfer->not_before_ms)
            r = transfer_start(transfer, err);
        over += transfer->is_over;
    }
    return r < 0 ? r : over == fetch->count;
}

static void transfers_ask(struct fetch *fetch, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->blob_count; i++) {
        struct transfer *transfer = &fetch->transfers[fetch->count];
        struct stat st;

        *transfer = (struct transfer){
            .fetch = fetch,
            .blob = &manifest->blobs[i],
            .fd = talk_want(manifest->blobs[i].digest, manifest->blobs[i].size),
        };
        if (transfer->fd < 0)
            continue;
        if (fstat(transfer->fd, &st) == 0 && (uint64_t)st.st_size <= transfer->blob->size)
            transfer->done = (uint64_t)st.st_size;
        fetch->total += transfer->blob->size;
        fetch->count++;
    }
}

int fetch_blobs(struct session *session, const struct manifest *manifest, struct err *err)
{
    cleanup_with(fetch_done) struct fetch fetch = {
        .session = session,
        .multi = curl_multi_init(),
        .transfers = xcalloc(manifest->blob_count + 1, sizeof(struct transfer)),
    };
    int r = 0, running;

    if (!fetch.multi)
        return err_sys(err, -ENOMEM, "make requests");
    transfers_ask(&fetch, manifest);
    while (r == 0) {
        r = due_start(&fetch, err);
        if (r != 0)
            break;
        (void)curl_multi_perform(fetch.multi, &running);
        r = ended_take(&fetch, err);
        report(&fetch);
        if (r == 0)
            (void)curl_multi_poll(fetch.multi, NULL, 0, WAIT_MS, NULL);
    }
    return r < 0 ? r : 0;
}
