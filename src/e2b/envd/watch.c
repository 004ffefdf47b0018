// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/wake.h"
#include "e2b/envd/methods.h"
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

static const enum envd_event_type types[FILE_EVENT_KINDS] = {
    [FILE_EVENT_CREATE] = ENVD_EVENT_TYPE_CREATE, [FILE_EVENT_WRITE] = ENVD_EVENT_TYPE_WRITE,
    [FILE_EVENT_REMOVE] = ENVD_EVENT_TYPE_REMOVE, [FILE_EVENT_RENAME] = ENVD_EVENT_TYPE_RENAME,
    [FILE_EVENT_CHMOD] = ENVD_EVENT_TYPE_CHMOD,
};

/* Adds the entry, unless it is gone already. */
static void entry_add(struct e2b_change *change, const struct e2b_watched *watched,
                      const struct file_event *event)
{
    bool may_be_there = event->kind == FILE_EVENT_CREATE || event->kind == FILE_EVENT_WRITE ||
                        event->kind == FILE_EVENT_CHMOD;
    struct file_request wish = { .type = FILE_STAT, .path = change->path };
    struct file_entry entry;
    struct err ignored;

    if (!watched->wants_entries || !may_be_there ||
        snprintf(change->path, sizeof(change->path), "%s/%s", watched->path[1] ? watched->path : "",
                 event->path) >= (int)sizeof(change->path) ||
        file_call_open(watched->sandbox, watched->watch_fd, false, &change->files.call, &ignored) <
            0 ||
        e2b_files_ask_one(&change->files, &wish, &entry, &ignored) < 0)
        return;
    e2b_entry_init(&change->entry, change->path, &entry);
    change->message.entry = &change->entry.info;
}

bool e2b_change_init(struct e2b_change *ret, const struct e2b_watched *watched,
                     const struct file_event *event)
{
    ret->message =
        (struct envd_filesystem_event){ .name = event->path, .type = types[event->kind] };
    ret->entry.metadata = NULL;
    ret->files = (struct e2b_files){ .user = watched->user };
    if (!ret->message.type || event->path[0] == '\0')
        return false;
    entry_add(ret, watched, event);
    return true;
}

void e2b_change_done(struct e2b_change *change)
{
    e2b_entry_done(&change->entry);
    e2b_files_close(&change->files);
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

int e2b_watched_begin(struct e2b_request *request, const struct envd_watch_dir_request *message,
                      int watch_fd, struct e2b_watched *ret, struct err *err)
{
    int r;

    *ret = (struct e2b_watched){ .watch_fd = watch_fd, .wants_entries = message->include_entry };
    ret->sandbox = TAKE_PTR(request->sandbox); /* a watch may outlive its request */
    r = e2b_user_of_call(request, &ret->user, err);
    if (r == 0)
        r = top_find(ret, e2b_files_path(message->path), err);
    return r == 0 ? watch_ask(ret, message->recursive, err) : r;
}

void e2b_watched_outlive(struct e2b_watched *watched, int watch_fd)
{
    watched->watch_fd = watch_fd;
    file_call_set_watch_fd(watched->call, watch_fd);
}

/* The answer to a second watch of the directory comes after all events of the first. */
void e2b_watched_catch_up(const struct e2b_watched *watched, int watch_fd)
{
    const struct file_request wish = { .type = FILE_WATCH, .path = watched->path };
    struct file_call *call = NULL;
    struct file_answer answer;
    struct err ignored = { 0 };

    if (file_call_open_watch(watched->sandbox, watch_fd, &call, &ignored) == 0 &&
        file_call_send_request(call, &wish, &ignored) == 0)
        (void)file_call_next(call, &answer, &ignored);
    file_call_close(call);
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

static int change_add(struct watch_stream *self, const struct file_event *event, struct buf *out)
{
    cleanup_with(e2b_change_done) struct e2b_change change;

    if (!e2b_change_init(&change, &self->watched, event))
        return 0;
    return message_add(out, MESSAGE(envd_watch_dir_response, .filesystem = &change.message));
}

/* As watch_next, but may have nothing to say. */
static int watch_turn(struct watch_stream *self, struct buf *out, struct err *err)
{
    static const struct envd_watch_dir_response_keep_alive keepalive;
    struct file_answer answer;
    int r = wait_event(self, err);

    if (r < 0)
        return r;
    if (r == 0) {
        r = message_add(out, MESSAGE(envd_watch_dir_response, .keepalive = &keepalive));
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = file_call_next(self->watched.call, &answer, err);
    if (r < 0)
        return worker_lost(self, r);
    r = change_add(self, &answer.event, out);
    return r < 0 ? err_sys(err, r, "write an event") : 1;
}

static int watch_next(struct stream *stream, struct buf *out, struct err *err)
{
    static const struct envd_watch_dir_response_start_event start;
    struct watch_stream *self = (struct watch_stream *)stream;
    size_t before = out->len;
    int r;

    if (!self->is_announced) {
        self->is_announced = true;
        r = message_add(out, MESSAGE(envd_watch_dir_response, .start = &start));
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

int envd_filesystem_watch_dir(struct e2b_request *request,
                              const struct envd_watch_dir_request *message, struct stream **ret,
                              struct err *err)
{
    static const struct stream_ops ops = { watch_next, watch_close };
    struct watch_stream *self = xcalloc(1, sizeof(*self));
    int r = e2b_watched_begin(request, message, request->connection_fd, &self->watched, err);

    self->stream.ops = &ops;
    self->keepalive_ms = (int)e2b_keepalive_ms(request);
    if (r < 0) {
        watch_close(&self->stream);
        return r;
    }
    *ret = &self->stream;
    return 0;
}
