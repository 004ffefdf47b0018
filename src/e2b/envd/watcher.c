// SPDX-License-Identifier: Apache-2.0
/* Each watcher has a thread, which ends with the watcher or with its sandbox, and then lets go of
 * the latter at once. */
#include "e2b/envd/watcher.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/envd/methods.h"
#include "e2b/envd/watch.h"
#include "host/sandbox/info.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/exchange.h"

enum {
    WATCHERS_MAX = 1024,
    EVENTS_MAX = 4096,
    KEPT_MAX = 4 * 1024 * 1024, /* bytes of events, of all watchers of one sandbox */
    EVENT_MAX = 256 * 1024,
};

struct watcher {
    struct watcher *next;
    struct e2b_watchers *watchers;
    char id[E2B_TOKEN_SIZE];
    char sandbox[SANDBOX_ID_MAX];   /* as the request has it */
    char owner[OWNER_NAME_MAX + 1]; /* of the sandbox */
    struct thread thread;
    int stop_fds[2]; /* closing the first wakes the watching thread on the second */
    struct e2b_watched watched;
    /* Under the lock of all. */
    bool is_reading;   /* a thread reads from the call; no other may */
    struct buf events; /* as text, which takes a tenth of the memory: "{...},{...}" */
    size_t event_count;
    bool is_over; /* its directory or its sandbox is gone */
};

struct e2b_watchers {
    struct lock lock;
    struct cond changed; /* a thread has read what there was */
    struct watcher *first;
    size_t count;
};

struct e2b_watchers *e2b_watchers_new(void)
{
    struct e2b_watchers *watchers = xcalloc(1, sizeof(*watchers));

    lock_init(&watchers->lock, LOCK_E2B_WATCHERS);
    cond_init(&watchers->changed);
    return watchers;
}

/* Locked. Of all watchers of its sandbox. */
static size_t kept_bytes(const struct watcher *watcher)
{
    size_t bytes = 0;

    for (const struct watcher *each = watcher->watchers->first; each; each = each->next)
        if (strcmp(each->sandbox, watcher->sandbox) == 0)
            bytes += each->events.len;
    return bytes;
}

/* Drops events beyond the limit: a client that never polls must not fill the memory. */
static void event_keep(struct watcher *watcher, const struct envd_filesystem_event *event)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(EVENT_MAX);

    if (schema_encode(SCHEMA_OF(envd_filesystem_event, event), ENCODE_ALL, &text) < 0)
        return;
    lock_take(&watcher->watchers->lock);
    if (watcher->event_count < EVENTS_MAX && kept_bytes(watcher) + 1 + text.len <= KEPT_MAX &&
        buf_reserve(&watcher->events, 1 + text.len) == 0) {
        if (watcher->event_count++ > 0)
            (void)buf_add_str(&watcher->events, ",");
        (void)buf_add(&watcher->events, text.data, text.len);
    }
    lock_release(&watcher->watchers->lock);
}

/* A thread with many pending events would report each before it checks for a stop. */
static bool is_stopped(const struct watcher *watcher)
{
    struct pollfd wait = { .fd = watcher->stop_fds[1], .events = POLLRDHUP };

    return poll(&wait, 1, 0) > 0;
}

/* Keeps the events that have arrived. Returns false when there will be no more. Only for the thread
 * that is reading. */
static bool watcher_read(struct watcher *watcher)
{
    struct file_answer answer;
    struct err ignored = { 0 };
    int r = 0;

    for (int i = 0; i < EVENTS_MAX && !is_stopped(watcher); i++) {
        r = file_call_wait(watcher->watched.call, 0, &ignored);
        if (r > 0)
            r = file_call_next(watcher->watched.call, &answer, &ignored) > 0 ? 1 : -EPIPE;
        if (r <= 0)
            break;
        cleanup_with(e2b_change_done) struct e2b_change change;

        if (e2b_change_init(&change, &watcher->watched, &answer.event))
            event_keep(watcher, &change.message);
    }
    return r >= 0;
}

/* Locked. Waits until no other thread reads. */
static void reading_begin(struct watcher *watcher)
{
    while (watcher->is_reading)
        cond_wait(&watcher->watchers->changed, &watcher->watchers->lock);
    watcher->is_reading = true;
}

/* Locked. */
static void reading_end(struct watcher *watcher)
{
    watcher->is_reading = false;
    cond_broadcast(&watcher->watchers->changed);
}

/* A poll of a client may read in its own thread, between two rounds of this one. */
static void watcher_main(void *argument)
{
    struct watcher *watcher = argument;
    bool goes_on = true;

    while (goes_on) {
        goes_on = file_call_wait_arrival(watcher->watched.call) == 0 && !is_stopped(watcher);
        lock_take(&watcher->watchers->lock);
        reading_begin(watcher);
        lock_release(&watcher->watchers->lock);
        goes_on = goes_on && watcher_read(watcher);
        lock_take(&watcher->watchers->lock);
        watcher->is_over = !goes_on;
        if (goes_on)
            reading_end(watcher);
        lock_release(&watcher->watchers->lock);
    }
    e2b_watched_done(&watcher->watched);
    lock_take(&watcher->watchers->lock);
    reading_end(watcher);
    lock_release(&watcher->watchers->lock);
}

/* Off the list already, or never on it. */
static void watcher_free(struct watcher *watcher)
{
    e2b_watched_done(&watcher->watched);
    for (int i = 0; i < 2; i++)
        watcher->stop_fds[i] = fd_close(watcher->stop_fds[i]);
    buf_done(&watcher->events);
    free(watcher);
}

/* A poll that reads at this moment ends soon: it has seen the stop. */
static void watcher_stop(struct watcher *watcher)
{
    watcher->stop_fds[0] = fd_close(watcher->stop_fds[0]);
    thread_join(&watcher->thread);
    lock_take(&watcher->watchers->lock);
    reading_begin(watcher);
    lock_release(&watcher->watchers->lock);
    watcher_free(watcher);
}

void e2b_watchers_free(struct e2b_watchers *watchers)
{
    if (!watchers)
        return;
    while (watchers->first) {
        struct watcher *watcher = watchers->first;

        watchers->first = watcher->next;
        watcher_stop(watcher);
    }
    cond_destroy(&watchers->changed);
    lock_destroy(&watchers->lock);
    free(watchers);
}

static struct e2b_watchers *watchers_of(const struct e2b_request *request)
{
    return request->e2b->watchers;
}

/* Locked. Where the request's watcher is on the list; NULL: it has none of this name. */
static struct watcher **slot_find(const struct e2b_request *request, const char *id)
{
    struct watcher **slot = &watchers_of(request)->first;

    while (*slot &&
           (strcmp((*slot)->id, id) != 0 || strcmp((*slot)->sandbox, request->to.sandbox) != 0))
        slot = &(*slot)->next;
    return *slot ? slot : NULL;
}

static int refuse_unknown(const char *id, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "watcher with id %.100s not found", id);
}

/* Removes watchers that were not polled for long. Needs the lock. */
static struct watcher *sweep(struct e2b_watchers *watchers)
{
    struct watcher *old = NULL, **slot = &watchers->first;

    while (*slot) {
        struct watcher *watcher = *slot;

        if (!watcher->is_over) {
            slot = &watcher->next;
            continue;
        }
        *slot = watcher->next;
        watcher->next = old;
        old = watcher;
        watchers->count--;
    }
    return old;
}

/* Returns the number of watchers of an owner. Needs the lock. */
static size_t owned_count(const struct e2b_watchers *watchers, const char *owner)
{
    size_t count = 0;

    for (const struct watcher *each = watchers->first; each; each = each->next)
        count += strcmp(each->owner, owner) == 0;
    return count;
}

static int enlist(struct watcher *watcher, struct err *err)
{
    struct e2b_watchers *watchers = watcher->watchers;
    const size_t share = owner_share(watcher->owner, WATCHERS_MAX);
    struct watcher *old = NULL;
    int r = 0;

    lock_take(&watchers->lock);
    if (watchers->count == WATCHERS_MAX || owned_count(watchers, watcher->owner) >= share)
        old = sweep(watchers);
    if (watchers->count == WATCHERS_MAX || owned_count(watchers, watcher->owner) >= share) {
        r = err_set(err, ERR_EXHAUSTED, "there are %zu watchers already", share);
    } else if (thread_start(&watcher->thread, "holt-watcher", watcher_main, watcher) < 0) {
        r = err_sys(err, -EAGAIN, "start a thread that watches");
    } else {
        watchers->count++;
        watcher->next = watchers->first;
        watchers->first = watcher;
    }
    lock_release(&watchers->lock);
    while (old) {
        struct watcher *next = old->next;

        watcher_stop(old);
        old = next;
    }
    return r;
}

int envd_filesystem_create_watcher(struct e2b_request *request,
                                   const struct envd_create_watcher_request *message,
                                   struct buf *out, struct err *err)
{
    const struct envd_watch_dir_request what = { .path = message->path,
                                                 .recursive = message->recursive,
                                                 .include_entry = message->include_entry };
    struct watcher *watcher = xcalloc(1, sizeof(*watcher));
    int r;

    watcher->watchers = watchers_of(request);
    watcher->stop_fds[0] = watcher->stop_fds[1] = -EBADF;
    watcher->events.max = KEPT_MAX;
    memcpy(watcher->sandbox, request->to.sandbox, sizeof(watcher->sandbox));
    (void)snprintf(watcher->owner, sizeof(watcher->owner), "%s", sandbox_owner(request->sandbox));
    r = e2b_token_make(watcher->id, err);
    if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, watcher->stop_fds) < 0)
        r = err_sys(err, -errno, "make a pair of sockets");
    if (r == 0)
        r = e2b_watched_begin(request, &what, request->connection_fd, &watcher->watched, err);
    if (r == 0)
        e2b_watched_outlive(&watcher->watched, watcher->stop_fds[1]);
    /* Once it is on the list another request may end it. */
    if (r == 0)
        r = envd_reply(out, MESSAGE(envd_create_watcher_response, .watcher_id = watcher->id), err);
    if (r == 0)
        r = enlist(watcher, err);
    if (r < 0)
        watcher_free(watcher);
    return r;
}

/* Reads what has happened until now, so that a client finds what it did itself. Returns the watcher
 * again, which may have been removed meanwhile. Locked. */
static struct watcher **watcher_catch_up(struct e2b_request *request, const char *id)
{
    struct e2b_watchers *watchers = watchers_of(request);
    struct watcher **slot = slot_find(request, id);

    while (slot && (*slot)->is_reading && !(*slot)->is_over) {
        cond_wait(&watchers->changed, &watchers->lock);
        slot = slot_find(request, id);
    }
    if (slot && !(*slot)->is_over) {
        struct watcher *watcher = *slot;

        watcher->is_reading = true;
        lock_release(&watchers->lock);
        e2b_watched_catch_up(&watcher->watched, request->connection_fd);
        (void)watcher_read(watcher);
        lock_take(&watchers->lock);
        reading_end(watcher);
        slot = slot_find(request, id);
    }
    return slot;
}

int envd_filesystem_get_watcher_events(struct e2b_request *request,
                                       const struct envd_get_watcher_events_request *message,
                                       struct buf *out, struct err *err)
{
    cleanup_with(buf_done) struct buf events = BUF_INIT(KEPT_MAX);
    struct e2b_watchers *watchers = watchers_of(request);
    struct list_encoder list;
    struct watcher **slot;

    lock_take(&watchers->lock);
    slot = watcher_catch_up(request, message->watcher_id);
    if (slot) {
        events = (*slot)->events;
        (*slot)->events = (struct buf){ .max = KEPT_MAX };
        (*slot)->event_count = 0;
    }
    lock_release(&watchers->lock);
    if (!slot)
        return refuse_unknown(message->watcher_id, err);
    if (list_encoder_begin(&list, &envd_get_watcher_events_response_schema, out) < 0 ||
        buf_add(out, events.data, events.len) < 0 || list_encoder_end(&list) < 0)
        return err_sys(err, -ENOMEM, "make room for events");
    return 0;
}

int envd_filesystem_remove_watcher(struct e2b_request *request,
                                   const struct envd_remove_watcher_request *message,
                                   struct buf *out, struct err *err)
{
    struct e2b_watchers *watchers = watchers_of(request);
    struct watcher **slot, *watcher = NULL;

    (void)out;
    lock_take(&watchers->lock);
    slot = slot_find(request, message->watcher_id);
    if (slot) {
        watcher = *slot;
        *slot = watcher->next;
        watchers->count--;
    }
    lock_release(&watchers->lock);
    if (!watcher)
        return refuse_unknown(message->watcher_id, err);
    watcher_stop(watcher);
    return 0;
}
