// SPDX-License-Identifier: Apache-2.0
/* The body of a client stream: however it is cut into pieces, the service gets the same messages
 * and the client the same answer. The first byte says how long the pieces are. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "http/connect_upload.h"
#include "http/upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 64 << 20, MESSAGES_MAX = 50 };

/* The calls of a service, and how it ended. */
struct told {
    struct buf text;
    unsigned messages;
    unsigned finished, closed;
};

struct listener {
    struct upload upload;
    struct told *told;
};

static struct told *told_now; /* of the upload that is begun next */

/* The one that is too many is refused by the service. */
static int hear(struct told *told, const json_t *message, struct err *err)
{
    if (++told->messages > MESSAGES_MAX)
        return err_set(err, ERR_EXHAUSTED, "too many");
    assert(json_is_object(message));
    (void)json_write(message, &told->text);
    return buf_add_str(&told->text, "\n");
}

static int on_message(struct upload *upload, const json_t *message, struct err *err)
{
    return hear(((struct listener *)upload)->told, message, err);
}

static int on_finish(struct upload *upload, struct buf *out, struct err *err)
{
    struct told *told = ((struct listener *)upload)->told;

    (void)err;
    told->finished++;
    return buf_printf(out, "{\"messages\":%d}", (int)told->messages);
}

static void on_close(struct upload *upload)
{
    ((struct listener *)upload)->told->closed++;
    free(upload);
}

static int begin(void *context, const json_t *first, struct upload **ret, struct err *err)
{
    static const struct upload_ops ops = { .message = on_message,
                                           .finish = on_finish,
                                           .close = on_close };
    struct listener *listener = xcalloc(1, sizeof(*listener));

    (void)context;
    listener->upload.ops = &ops;
    listener->told = told_now;
    *ret = &listener->upload;
    return hear(told_now, first, err);
}

/* What the client gets, as one text. */
static void answer(const uint8_t *data, size_t size, size_t piece, struct told *told)
{
    struct upload_intake *intake;
    cleanup_with(buf_done) struct buf reply = BUF_INIT(TEXT_MAX);
    struct err err = { 0 };
    int r;

    told_now = told;
    intake = upload_intake_new(begin, NULL);
    for (size_t at = 0; at < size; at += piece)
        if (!upload_intake_take(intake, (const char *)data + at,
                                size - at < piece ? size - at : piece))
            break;
    r = upload_intake_finish(intake, &reply, &err);
    assert(r == 0 || err.kind == ERR_INVALID || err.kind == ERR_EXHAUSTED);
    assert(r < 0 || told->finished == 1);
    (void)buf_printf(&told->text, "%d %s", r, r < 0 ? err.msg : "good");
    upload_intake_free(intake);
    assert(told->closed == (told->messages > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct told whole = { .text = BUF_INIT(TEXT_MAX) }, pieces = { .text = BUF_INIT(TEXT_MAX) };

    if (size == 0)
        return 0;
    answer(data + 1, size - 1, size, &whole);
    answer(data + 1, size - 1, (size_t)data[0] + 1, &pieces);
    assert(whole.text.len == pieces.text.len &&
           memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0);
    buf_done(&whole.text);
    buf_done(&pieces.text);
    return 0;
}
