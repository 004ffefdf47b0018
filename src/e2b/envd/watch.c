// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/watch.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/wake.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/file.h"
#include "e2b/envd/process_stream.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/stream.h"

struct watch_stream {
    struct stream stream;
    struct e2b_watched watched;
    bool is_announced;
    bool is_deaf; /* the directory is gone, and with it whatever could happen in it */
    int keepalive_ms;
};

static const char *const kinds[FILE_EVENT_KINDS] = {
    [FILE_EVENT_CREATE] = "EVENT_TYPE_CREATE", [FILE_EVENT_WRITE] = "EVENT_TYPE_WRITE",
    [FILE_EVENT_REMOVE] = "EVENT_TYPE_REMOVE", [FILE_EVENT_RENAME] = "EVENT_TYPE_RENAME",
    [FILE_EVENT_CHMOD] = "EVENT_TYPE_CHMOD",
};

/* Returns the present entry; NULL if it is gone. */
static json_t *entry_look(const struct e2b_watched *watched, const struct file_event *event)
{
    cleanup_with(e2b_files_close) struct e2b_files looks = { .user = watched->user };
    bool may_be_there = event->kind == FILE_EVENT_CREATE || event->kind == FILE_EVENT_WRITE ||
                        event->kind == FILE_EVENT_CHMOD;
    char path[ENTRY_PATH_MAX + 1];
    struct file_request wish = { .type = FILE_STAT, .path = path };
    struct file_entry entry;
    struct err ignored;

    /* Workers are few: this one is had for a moment only. */
    if (!watched->wants_entries || !may_be_there ||
        snprintf(path, sizeof(path), "%s/%s", watched->path[1] ? watched->path : "", event->path) >=
            (int)sizeof(path) ||
        file_call_open(watched->sandbox, watched->watch_fd, false, &looks.call, &ignored) < 0 ||
        e2b_files_ask_one(&looks, &wish, &entry, &ignored) < 0)
        return NULL;
    return e2b_entry_json(path, &entry);
}

json_t *e2b_watched_event(struct e2b_watched *watched, const struct file_event *event)
{
    if (!kinds[event->kind] || event->path[0] == '\0')
        return NULL;
    return json_pack("{s:o, s:s, s:o*}", "name", json_text(event->path), "type", kinds[event->kind],
                     "entry", entry_look(watched, event));
}

/* The directory, from the root, if the sandbox has such a user. */
static int top_find(struct e2b_watched *watched, const char *path, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files looks = { .user = watched->user };
    struct file_request wish = { .type = FILE_STAT, .path = path };
    struct file_entry entry;
    int r = file_call_open(watched->sandbox, watched->watch_fd, false, &looks.call, err);

    if (r == 0)
        r = e2b_files_ask_one(&looks, &wish, &entry, err);
    if (r == 0)
        (void)snprintf(watched->path, sizeof(watched->path), "%s", entry.path);
    return r;
}

static int watch_ask(struct e2b_watched *watched, bool is_recursive, struct err *err)
{
    const struct file_request wish = { .type = FILE_WATCH,
                                       .path = watched->path,
                                       .flags = is_recursive ? FILE_RECURSIVE : 0 };
    struct file_answer answer;
    int r = file_call_open_watch(watched->sandbox, watched->watch_fd, &watched->call, err);

    if (r == 0)
        r = file_call_send_request(watched->call, &wish, err);
    if (r == 0)
        r = file_call_next(watched->call, &answer, err);
    return r < 0 ? r : 0;
}

int e2b_watched_begin(struct e2b_request *request, int watch_fd, struct e2b_watched *ret,
                      struct err *err)
{
    const char *path = NULL;
    bool is_recursive = false;
    int r = json_get_bool(request->body, "recursive", &is_recursive, err);

    *ret = (struct e2b_watched){ .watch_fd = watch_fd };
    ret->sandbox = TAKE_PTR(request->sandbox); /* a watch may outlive its request */
    if (r == 0)
        r = json_get_bool(request->body, "includeEntry", &ret->wants_entries, err);
    if (r == 0)
        r = e2b_user_of_call(request, &ret->user, err);
    if (r == 0)
        r = e2b_files_path(request, "path", &path, err);
    if (r == 0)
        r = top_find(ret, path, err);
    return r == 0 ? watch_ask(ret, is_recursive, err) : r;
}

void e2b_watched_outlive(struct e2b_watched *watched, int watch_fd)
{
    watched->watch_fd = watch_fd;
    file_call_set_watch_fd(watched->call, watch_fd);
}

void e2b_watched_done(struct e2b_watched *watched)
{
    file_call_close(watched->call);
    watched->call = NULL;
    sandbox_unref(watched->sandbox);
    watched->sandbox = NULL;
}

/* --- WatchDir --------------------------------------------------------------------------------- */

/* Returns 1 for an event, 0 when a keepalive is due. */
static int wait_event(const struct watch_stream *self, struct err *err)
{
    struct pollfd client = { .fd = self->watched.watch_fd, .events = POLLRDHUP };

    if (!self->is_deaf)
        return file_call_wait(self->watched.call, self->keepalive_ms, err);
    return poll(&client, 1, self->keepalive_ms) > 0 ? -ECANCELED : 0;
}

/* A sandbox that ends takes its streams with it without a word; a directory that does not. */
static int worker_lost(struct watch_stream *self, int r)
{
    if (r == -ECANCELED || !e2b_is_active(self->watched.sandbox))
        return -ECANCELED;
    self->is_deaf = true;
    return 1;
}

/* As watch_next, but may have nothing to say. */
static int watch_turn(struct watch_stream *self, struct buf *out, struct err *err)
{
    struct file_answer answer;
    json_t *event;
    int r = wait_event(self, err);

    if (r < 0)
        return r;
    if (r == 0) {
        r = message_add_take(out, json_pack("{s:{}}", "keepalive"));
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = file_call_next(self->watched.call, &answer, err);
    if (r < 0)
        return worker_lost(self, r);
    event = e2b_watched_event(&self->watched, &answer.event);
    if (event)
        r = message_add_take(out, json_pack("{s:o}", "filesystem", event));
    return r < 0 ? err_sys(err, r, "write an event") : 1;
}

static int watch_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct watch_stream *self = (struct watch_stream *)stream;
    size_t before = out->len;
    int r;

    if (!self->is_announced) {
        self->is_announced = true;
        r = message_add_take(out, json_pack("{s:{}}", "start"));
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    do
        r = watch_turn(self, out, err);
    while (r > 0 && out->len == before);
    return r;
}

static void watch_close(struct stream *stream)
{
    struct watch_stream *self = (struct watch_stream *)stream;

    e2b_watched_done(&self->watched);
    free(self);
}

int e2b_watch(struct e2b_request *request, struct stream **ret, struct err *err)
{
    static const struct stream_ops ops = { watch_next, watch_close };
    struct watch_stream *self = xcalloc(1, sizeof(*self));
    int r = e2b_watched_begin(request, request->connection_fd, &self->watched, err);

    self->stream.ops = &ops;
    self->keepalive_ms = (int)e2b_keepalive_ms(request);
    if (r < 0) {
        watch_close(&self->stream);
        return r;
    }
    *ret = &self->stream;
    return 0;
}
