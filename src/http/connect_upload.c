// SPDX-License-Identifier: Apache-2.0
#include "http/connect_upload.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "http/upload.h"
#include "wire/envelope.h"

struct upload_intake {
    upload_begin_fn begin;
    void *context;
    struct upload *upload; /* NULL before the first message */
    struct buf rest;       /* the beginning of a message that is not complete yet */
    struct err err;
    int failed; /* negative: err is set */
};

struct upload_intake *upload_intake_new(upload_begin_fn begin, void *context)
{
    struct upload_intake *intake = xcalloc(1, sizeof(*intake));

    intake->begin = begin;
    intake->context = context;
    intake->rest.max = ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX;
    return intake;
}

static int message_take(struct upload_intake *intake, const struct envelope *envelope,
                        struct err *err)
{
    cleanup_json json_t *message = NULL;
    int r;

    if (envelope->is_end)
        return err_set(err, ERR_INVALID, "a request ends with its body, not with a message");
    if (envelope->len == 0)
        return err_set(err, ERR_INVALID, "a message is empty; the shortest one is {}");
    r = json_parse_object(envelope->payload, envelope->len, &message, err);
    if (r < 0)
        return r;
    if (!intake->upload)
        return intake->begin(intake->context, message, &intake->upload, err);
    return intake->upload->ops->message(intake->upload, message, err);
}

/* Handles every complete message; returns how many bytes these have. */
static ssize_t messages_take(struct upload_intake *intake, const char *data, size_t len,
                             struct err *err)
{
    size_t done = 0;

    while (done < len) {
        struct envelope envelope;
        ssize_t size = envelope_parse(data + done, len - done, &envelope);
        int r;

        if (size == 0)
            break;
        if (size == -EMSGSIZE)
            return err_set(err, ERR_EXHAUSTED, "a message is larger than %d bytes",
                           ENVELOPE_PAYLOAD_MAX);
        if (size < 0)
            return err_set(err, ERR_INVALID, "the body is not made of enveloped messages");
        r = message_take(intake, &envelope, err);
        if (r < 0)
            return r;
        done += (size_t)size;
    }
    return (ssize_t)done;
}

/* Never adds more than the incomplete message lacks, so the buffer's limit is that of a message. */
static ssize_t rest_fill(struct upload_intake *intake, const char *data, size_t len,
                         struct err *err)
{
    size_t room = intake->rest.max - intake->rest.len;
    size_t taken = len < room ? len : room;
    ssize_t done;
    int r = buf_add(&intake->rest, data, taken);

    if (r < 0)
        return err_sys(err, r, "keep a message");
    done = messages_take(intake, intake->rest.data, intake->rest.len, err);
    if (done < 0)
        return done;
    buf_consume(&intake->rest, (size_t)done);
    return (ssize_t)taken;
}

void upload_intake_fail(struct upload_intake *intake, int error, const struct err *err)
{
    if (intake->failed < 0)
        return;
    intake->failed = error;
    intake->err = *err;
    buf_done(&intake->rest);
}

bool upload_intake_take(struct upload_intake *intake, const char *data, size_t len)
{
    while (len > 0 && intake->failed == 0) {
        ssize_t taken = rest_fill(intake, data, len, &intake->err);

        if (taken < 0) {
            intake->failed = (int)taken;
            buf_done(&intake->rest);
            return false;
        }
        data += taken;
        len -= (size_t)taken;
    }
    return intake->failed == 0;
}

static int body_check(const struct upload_intake *intake, struct err *err)
{
    if (intake->failed < 0) {
        *err = intake->err;
        return intake->failed;
    }
    if (intake->rest.len > 0)
        return err_set(err, ERR_INVALID, "the body ends inside a message");
    if (!intake->upload)
        return err_set(err, ERR_INVALID, "the body has no message; it needs at least one");
    return 0;
}

int upload_intake_begun(struct upload_intake *intake, struct upload **ret, struct err *err)
{
    int r = body_check(intake, err);

    if (r == 0)
        *ret = TAKE_PTR(intake->upload);
    return r;
}

int upload_intake_finish(struct upload_intake *intake, struct buf *out, struct err *err)
{
    int r = body_check(intake, err);

    if (r < 0)
        return r;
    return intake->upload->ops->finish(intake->upload, out, err);
}

void upload_intake_free(struct upload_intake *intake)
{
    if (!intake)
        return;
    if (intake->upload)
        intake->upload->ops->close(intake->upload);
    buf_done(&intake->rest);
    free(intake);
}
