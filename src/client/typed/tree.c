// SPDX-License-Identifier: Apache-2.0
#include "client/typed/tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "holt.h"
#include "wire/file_json.h"

enum {
    MESSAGE_MAX = 64 * 1024,
    GATHER = 64 * 1024, /* bytes of small files that go together */
};

struct tree_pull {
    struct holt_stream *stream;
    struct file_json_texts texts;
    char why[256];
};

struct tree_push {
    struct holt_stream *stream;
    struct holt_input *input;
    struct buf small; /* bytes of the present file that were not sent yet */
};

static int no_memory(struct holt_error *error)
{
    return error_set(error, "resource_exhausted", "no memory for a message");
}

static int strange(struct holt_error *error, const struct err *err)
{
    return error_set(error, "internal", "the daemon's answer cannot be read: %s", err->msg);
}

/* The fields that all requests have. */
static json_t *request_of(const struct tree_place *place)
{
    json_t *request = json_pack("{s:s}", "sandboxId", place->sandbox);

    if (file_json_set_path(request, "path", "rawPath", place->path) < 0 ||
        (place->user && json_object_set_new(request, "user", json_string(place->user)) < 0)) {
        json_decref(request);
        return NULL;
    }
    return request;
}

static char *text_of(const json_t *value)
{
    return value ? json_dumps(value, JSON_COMPACT) : NULL;
}

int tree_stat(struct holt *holt, const struct tree_place *place, struct file_entry *ret,
              struct holt_error *error)
{
    cleanup_free struct file_json_texts *texts = xcalloc(1, sizeof(*texts));
    cleanup_json json_t *request = request_of(place), *reply = NULL;
    cleanup_free char *text = NULL, *answer = NULL;
    struct err err = { 0 };

    (void)json_object_set_new(request, "follow", json_boolean(place->follows_link));
    text = text_of(request);
    if (!text)
        return no_memory(error);
    if (holt_call(holt, "holt.v1.FileService/Stat", text, HOLT_NO_DEADLINE, &answer, error) < 0)
        return -1;
    if (json_parse_object(answer, strlen(answer), &reply, &err) < 0 ||
        file_json_get(json_object_get(reply, "entry"), texts, ret, &err) < 0)
        return strange(error, &err);
    ret->path = ret->target = ret->same_as = "";
    return 0;
}

int tree_pull_open(struct holt *holt, const struct tree_place *place, struct tree_pull **ret,
                   struct holt_error *error)
{
    cleanup_json json_t *request = request_of(place);
    cleanup_free char *text = NULL;
    struct holt_stream *stream = NULL;

    if (place->follows_link)
        (void)json_object_set_new(request, "follow", json_true());
    text = text_of(request);
    if (!text)
        return no_memory(error);
    if (holt_stream_open_raw(holt, "holt.v1.FileService/Pull", text, HOLT_NO_DEADLINE, &stream,
                             error) < 0)
        return -1;
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->stream = stream;
    return 0;
}

static int take_trouble(struct tree_pull *pull, const json_t *trouble, struct tree_piece *ret,
                        struct err *err)
{
    const char *why = "";
    int r = file_json_get_path(trouble, "path", "rawPath", pull->texts.path, err);

    if (r == 0)
        r = json_get_text(trouble, "message", &why, err);
    if (r < 0)
        return r;
    (void)snprintf(pull->why, sizeof(pull->why), "%s", why);
    *ret = (struct tree_piece){ .kind = TREE_TROUBLE,
                                .entry = { .path = pull->texts.path },
                                .data = pull->why,
                                .len = strlen(pull->why) };
    return 0;
}

static int take_event(struct tree_pull *pull, const char *data, size_t len, struct tree_piece *ret,
                      struct holt_error *error)
{
    cleanup_json json_t *message = NULL;
    const json_t *trouble;
    struct err err = { 0 };
    int r = json_parse_object(data, len, &message, &err);

    if (r == 0) {
        trouble = json_object_get(message, "trouble");
        ret->kind = TREE_ENTRY;
        r = trouble
                ? take_trouble(pull, trouble, ret, &err)
                : file_json_get(json_object_get(message, "entry"), &pull->texts, &ret->entry, &err);
    }
    return r < 0 ? strange(error, &err) : 1;
}

int tree_pull_next(struct tree_pull *pull, struct tree_piece *ret, struct holt_error *error)
{
    struct holt_piece piece;
    int r = holt_stream_next_raw(pull->stream, &piece, error);

    if (r <= 0)
        return r;
    if (piece.kind == HOLT_EVENT)
        return take_event(pull, piece.data, piece.len, ret, error);
    *ret = (struct tree_piece){ .kind = TREE_DATA, .data = piece.data, .len = piece.len };
    return 1;
}

void tree_pull_close(struct tree_pull *pull)
{
    if (!pull)
        return;
    holt_stream_close(pull->stream);
    free(pull);
}

/* The first piece says that it has begun, or why not. */
static int push_begin(struct tree_push *push, struct holt_error *error)
{
    struct holt_piece piece;
    int r = holt_stream_next_raw(push->stream, &piece, error);

    if (r == 0)
        return error_set(error, "internal", "the daemon ended the copy before it began");
    return r < 0 ? -1 : holt_input_open(push->stream, &push->input, error);
}

int tree_push_open(struct holt *holt, const struct tree_place *place, struct tree_push **ret,
                   struct holt_error *error)
{
    cleanup_json json_t *request = request_of(place);
    cleanup_free char *text = NULL;
    struct holt_stream *stream = NULL;
    struct tree_push *push;

    if (place->keeps_owner)
        (void)json_object_set_new(request, "keepOwner", json_true());
    text = text_of(request);
    if (!text)
        return no_memory(error);
    if (holt_stream_open_raw(holt, "holt.v1.FileService/Push", text, HOLT_NO_DEADLINE, &stream,
                             error) < 0)
        return -1;
    push = xcalloc(1, sizeof(*push));
    push->stream = stream;
    push->small.max = GATHER;
    if (push_begin(push, error) < 0) {
        tree_push_close(push);
        return -1;
    }
    *ret = push;
    return 0;
}

/* What the daemon says after all; if that is nothing bad, error stays what it was. */
static int hear(struct tree_push *push, struct holt_error *error)
{
    struct holt_error heard = { .code = "" };
    struct holt_piece piece;
    int r;

    do
        r = holt_stream_next_raw(push->stream, &piece, &heard);
    while (r > 0);
    if (r < 0)
        *error = heard;
    return -1;
}

/* A daemon that speaks before it is asked has a reason to stop. */
static int check_early(struct tree_push *push, struct holt_error *error)
{
    struct pollfd wait = { .fd = holt_stream_fd(push->stream), .events = POLLIN };

    if (wait.fd >= 0 && poll(&wait, 1, 0) <= 0)
        return 0;
    error_fill(error, "internal", "the daemon ended the copy early");
    return hear(push, error);
}

static int send_small(struct tree_push *push, struct holt_error *error)
{
    if (push->small.len == 0)
        return 0;
    if (holt_input_send(push->input, push->small.data, push->small.len, false, HOLT_NO_DEADLINE,
                        error) < 0)
        return hear(push, error);
    buf_clear(&push->small);
    return 0;
}

int tree_push_entry(struct tree_push *push, const struct file_entry *entry,
                    struct holt_error *error)
{
    cleanup_json json_t *message = json_pack("{s:o}", "entry", file_json_of(entry));
    cleanup_free char *text = text_of(message);

    if (!text)
        return no_memory(error);
    if (check_early(push, error) < 0 || send_small(push, error) < 0)
        return -1;
    return holt_input_message(push->input, text, HOLT_NO_DEADLINE, error) < 0 ? hear(push, error)
                                                                              : 0;
}

int tree_push_data(struct tree_push *push, const void *data, size_t len, struct holt_error *error)
{
    if (push->small.len + len <= GATHER)
        return buf_add(&push->small, data, len) < 0 ? no_memory(error) : 0;
    if (check_early(push, error) < 0 || send_small(push, error) < 0)
        return -1;
    return holt_input_send(push->input, data, len, false, HOLT_NO_DEADLINE, error) < 0
               ? hear(push, error)
               : 0;
}

int tree_push_finish(struct tree_push *push, struct holt_error *error)
{
    struct holt_piece piece;
    int r;

    if (send_small(push, error) < 0)
        return -1;
    if (holt_input_send(push->input, NULL, 0, true, HOLT_NO_DEADLINE, error) < 0)
        return hear(push, error);
    do
        r = holt_stream_next_raw(push->stream, &piece, error);
    while (r > 0);
    return r;
}

void tree_push_close(struct tree_push *push)
{
    if (!push)
        return;
    holt_input_close(push->input);
    holt_stream_close(push->stream);
    buf_done(&push->small);
    free(push);
}
