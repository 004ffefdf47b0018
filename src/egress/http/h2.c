// SPDX-License-Identifier: Apache-2.0
#include "egress/http/h2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum {
    WINDOW = 256 * 1024, /* what a server may send before it is taken */
    FIELDS_MAX = HTTP_FIELDS_MAX + 68,
    HEADER_LIST_MAX = HTTP_MESSAGE_MAX,
};

struct h2 {
    nghttp2_session *session;
    int32_t stream; /* 0: none */
    struct buf *upload;
    bool is_upload_over;
    bool has_head; /* the final one */
    struct h2_reply reply;
};

static void head_reset(struct h2 *h2)
{
    http_draft_done(&h2->reply.fields);
    http_draft_init(&h2->reply.fields);
    h2->reply.status = 0;
}

// NOLINTNEXTLINE(readability-function-size): the signature is that of nghttp2
static int header_take(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                       void *data)
{
    struct h2 *h2 = data;
    struct http_text key = { (const char *)name, name_len };
    struct http_text text = { (const char *)value, value_len };

    (void)session;
    (void)flags;
    if (frame->hd.stream_id != h2->stream || h2->has_head)
        return 0; /* trailers are dropped */
    if (http_text_is(key, ":status")) {
        h2->reply.status = (unsigned)strtoul((const char *)value, NULL, 10);
        return 0;
    }
    if (h2->reply.fields.count == HTTP_FIELDS_MAX ||
        http_draft_add(&h2->reply.fields, key, text) < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return 0;
}

static int frame_taken(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    struct h2 *h2 = data;

    (void)session;
    if (frame->hd.stream_id != h2->stream || h2->stream == 0)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !h2->has_head) {
        if (h2->reply.status >= 200)
            h2->has_head = true;
        else
            head_reset(h2); /* an interim reply */
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        h2->reply.is_ended = true;
    return 0;
}

static int data_taken(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                      size_t len, void *data)
{
    struct h2 *h2 = data;

    (void)flags;
    if (stream != h2->stream) {
        (void)nghttp2_session_consume_connection(session, len);
        return 0;
    }
    return buf_add(&h2->reply.data, bytes, len) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *data)
{
    struct h2 *h2 = data;

    (void)session;
    if (stream != h2->stream)
        return 0;
    h2->reply.is_failed =
        !h2->reply.is_ended || !h2->has_head || (error != NGHTTP2_NO_ERROR && !h2->reply.is_ended);
    h2->reply.is_ended = true;
    h2->upload = NULL;
    return 0;
}

// NOLINTNEXTLINE(readability-function-size): the signature is that of nghttp2
static ssize_t upload_take(nghttp2_session *session, int32_t stream, uint8_t *out, size_t len,
                           uint32_t *flags, nghttp2_data_source *source, void *data)
{
    struct h2 *h2 = data;
    size_t part = h2->upload ? h2->upload->len : 0;

    (void)session;
    (void)stream;
    (void)source;
    part = part < len ? part : len;
    if (part > 0) {
        memcpy(out, h2->upload->data, part);
        buf_consume(h2->upload, part);
    }
    if (h2->is_upload_over && (!h2->upload || h2->upload->len == 0))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (part == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)part;
}

static nghttp2_session *session_new(struct h2 *h2)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *session = NULL;

    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) {
        nghttp2_session_callbacks_del(callbacks);
        return NULL;
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header_take);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_taken);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_taken);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new2(&session, callbacks, h2, option) != 0)
        session = NULL;
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return session;
}

struct h2 *h2_new(void)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX },
    };
    struct h2 *h2 = xcalloc(1, sizeof(*h2));

    h2->reply.data = (struct buf)BUF_INIT((size_t)2 * WINDOW);
    http_draft_init(&h2->reply.fields);
    h2->session = session_new(h2);
    if (h2->session &&
        nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) ==
            0 &&
        nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0, WINDOW) == 0)
        return h2;
    h2_free(h2);
    return NULL;
}

void h2_free(struct h2 *h2)
{
    if (!h2)
        return;
    nghttp2_session_del(h2->session);
    http_draft_done(&h2->reply.fields);
    buf_done(&h2->reply.data);
    free(h2);
}

static nghttp2_nv header_make(struct http_text name, struct http_text value)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.at,
                         .value = (uint8_t *)(uintptr_t)value.at,
                         .namelen = name.len,
                         .valuelen = value.len,
                         .flags = NGHTTP2_NV_FLAG_NO_INDEX };
}

static nghttp2_nv pseudo_make(const char *name, struct http_text value)
{
    return header_make((struct http_text){ name, strlen(name) }, value);
}

/* Names are lower case in HTTP/2. */
static void name_lower(struct http_text name)
{
    char *at = (char *)(uintptr_t)name.at;

    for (size_t i = 0; i < name.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z')
            at[i] = (char)(at[i] | 0x20);
}

int h2_request(struct h2 *h2, const struct h2_request *request)
{
    const nghttp2_data_provider provider = { .read_callback = upload_take };
    nghttp2_nv fields[FIELDS_MAX];
    size_t count = 0;

    fields[count++] =
        pseudo_make(":method", (struct http_text){ request->method, strlen(request->method) });
    fields[count++] = pseudo_make(":scheme", (struct http_text){ "https", 5 });
    fields[count++] = pseudo_make(
        ":authority", (struct http_text){ request->authority, strlen(request->authority) });
    fields[count++] = pseudo_make(":path", request->target);
    for (size_t i = 0; i < request->fields->count; i++) {
        struct http_text name = http_draft_name(request->fields, i);

        name_lower(name);
        if (!http_text_is(name, "expect"))
            fields[count++] = header_make(name, http_draft_value(request->fields, i));
    }
    head_reset(h2);
    buf_clear(&h2->reply.data);
    h2->reply.is_ended = h2->reply.is_failed = h2->has_head = h2->is_upload_over = false;
    h2->upload = request->upload;
    h2->stream = nghttp2_submit_request(h2->session, NULL, fields, count,
                                        request->upload ? &provider : NULL, NULL);
    return h2->stream > 0 ? 0 : -EIO;
}

void h2_upload(struct h2 *h2, bool is_over)
{
    h2->is_upload_over = is_over;
    (void)nghttp2_session_resume_data(h2->session, h2->stream);
}

int h2_receive(struct h2 *h2, const char *data, size_t len)
{
    return nghttp2_session_mem_recv(h2->session, (const uint8_t *)data, len) < 0 ? -EPROTO : 0;
}

int h2_send(struct h2 *h2, struct buf *out, size_t max)
{
    while (out->len < max) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(h2->session, &data);

        if (n == 0)
            return 0;
        if (n < 0 || buf_add(out, data, (size_t)n) < 0)
            return -EPROTO;
    }
    return 0;
}

void h2_consume(struct h2 *h2, size_t len)
{
    (void)nghttp2_session_consume(h2->session, h2->stream, len);
    buf_consume(&h2->reply.data, len);
}

struct h2_reply *h2_reply(struct h2 *h2)
{
    return &h2->reply;
}

bool h2_is_usable(const struct h2 *h2)
{
    return nghttp2_session_check_request_allowed(h2->session) != 0;
}
