// SPDX-License-Identifier: Apache-2.0
/* Requests to views, and the thread that reads their messages and watches them. */
#include "host/view/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/view/view_internal.h"
#include "kernel/fds.h"
#include "viewfs/control.h"

enum {
    PING_MS = 400,
    SILENT_MS = 1500,  /* after which a view is ended */
    ANSWER_MS = 10000, /* a change of rules waits for the requests under way */
    DENIALS_MAX = 16,  /* that are told */
    DENIALS_FIRST_MS = 1000,
    DENIALS_PAUSE_MS = 60000,
};

/* --- life ------------------------------------------------------------------------------------- */

static void view_kill(const struct view *view)
{
    if (view->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, view->pidfd, SIGKILL, NULL, 0);
}

/* Returns whether the process has ended; waits for it if it is to. */
static bool view_has_ended(const struct view *view, bool waits)
{
    struct pollfd wait = { .fd = view->pidfd, .events = POLLIN };
    siginfo_t info;

    if (view->pidfd < 0)
        return true;
    if (poll(&wait, 1, waits ? -1 : 0) <= 0)
        return false;
    if (view->is_child)
        (void)waitid(P_PIDFD, (id_t)view->pidfd, &info, WEXITED | WNOHANG);
    return true;
}

static void view_free(struct view *view)
{
    (void)fd_close(view->fd);
    (void)fd_close(view->pidfd);
    json_decref(view->answer);
    json_decref(view->denials);
    free(view);
}

static struct view *view_new(struct views *views, const char *id)
{
    struct view *view = xcalloc(1, sizeof(*view));

    view->views = views;
    view->fd = view->pidfd = -1;
    view->answer_ms = clock_ms();
    (void)snprintf(view->id, sizeof(view->id), "%s", id);
    return view;
}

static void views_wake(struct views *views)
{
    const uint64_t one = 1;

    (void)!write(views->wake_fd, &one, sizeof(one));
}

static void view_add(struct view *view)
{
    struct views *views = view->views;

    lock_scope(&views->lock);
    view->next = views->list;
    views->list = view;
    views_wake(views);
}

static void view_remove(struct view *view)
{
    struct views *views = view->views;
    struct view **slot = &views->list;

    lock_scope(&views->lock);
    while (*slot != view)
        slot = &(*slot)->next;
    *slot = view->next;
    views_wake(views);
}

/* --- requests --------------------------------------------------------------------------------- */

/* The views are locked. */
static int view_send(struct view *view, json_t *message, int flags)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = NULL;
    ssize_t n;

    if (view->fd < 0)
        return -ENOTCONN;
    (void)json_object_set_new(owned, "sequence", json_integer((json_int_t)++view->sequence));
    text = json_dumps(owned, JSON_COMPACT);
    n = text ? fds_send(view->fd, text, strlen(text), flags, NULL, 0) : -ENOMEM;
    return n < 0 ? (int)n : 0;
}

/* Sends a request and waits for its answer, which the caller frees. */
static int view_request(struct view *view, json_t *message, json_t **ret, struct err *err)
{
    struct views *views = view->views;
    const uint64_t deadline_ms = clock_after_ms(ANSWER_MS);
    int r;

    lock_scope(&views->lock);
    while (view->is_busy)
        cond_wait(&views->answered, &views->lock);
    r = view_send(view, message, 0);
    if (r < 0)
        return err_sys(err, r, "send to the file server of '%s'", view->id);
    view->is_busy = true;
    view->awaited = view->sequence;
    while (!view->answer && view->fd >= 0 &&
           cond_wait_until(&views->answered, &views->lock, deadline_ms))
        ;
    *ret = TAKE_PTR(view->answer);
    view->awaited = 0;
    view->is_busy = false;
    cond_broadcast(&views->answered);
    if (*ret)
        return 0;
    return err_set(err, ERR_INTERNAL, "the file server of '%s' %s", view->id,
                   view->fd < 0 ? "has ended" : "does not answer");
}

int view_set_rules(struct view *view, const char *rules, uint64_t generation, size_t *ret_open,
                   struct err *err)
{
    json_t *message = json_pack("{s:s, s:s, s:I}", "do", "rules", "rules", rules, "generation",
                                (json_int_t)generation);
    cleanup_json json_t *answer = NULL;
    uint64_t open = 0;
    int r = message ? view_request(view, message, &answer, err)
                    : err_set(err, ERR_INVALID, "the rules are not valid UTF-8");

    if (r == 0)
        r = json_get_u64(answer, "open", &open, err);
    if (r == 0)
        *ret_open = (size_t)open;
    return r;
}

static int holder_read(const json_t *item, struct view_holder *ret, struct err *err)
{
    const char *path = "", *level = "";
    uint64_t pid = 0;

    if (json_get_text(item, "path", &path, err) < 0 ||
        json_get_text(item, "level", &level, err) < 0 || json_get_u64(item, "pid", &pid, err) < 0)
        return err_wrap(err, "holt-view");
    (void)snprintf(ret->path, sizeof(ret->path), "%s", path);
    (void)snprintf(ret->level, sizeof(ret->level), "%s", level);
    ret->pid = (pid_t)pid;
    return 0;
}

int view_list_holders(struct view *view, struct view_holder **ret, size_t *ret_count,
                      struct err *err)
{
    cleanup_json json_t *answer = NULL;
    cleanup_free struct view_holder *holders = NULL;
    const json_t *files = NULL, *item;
    size_t i;
    int r = view_request(view, json_pack("{s:s}", "do", "holders"), &answer, err);

    if (r == 0)
        r = json_get_array(answer, "files", &files, err);
    if (r < 0)
        return r;
    holders = xcalloc(VIEW_HOLDERS_MAX, sizeof(*holders));
    json_array_foreach(files, i, item) {
        if (i == VIEW_HOLDERS_MAX)
            break;
        r = holder_read(item, &holders[i], err);
        if (r < 0)
            return r;
    }
    *ret_count = i;
    *ret = TAKE_PTR(holders);
    return 0;
}

int view_judge_held(struct view *view, struct view_held *held, size_t count, struct err *err)
{
    cleanup_json json_t *answer = NULL;
    json_t *nodes = json_array();
    const json_t *files = NULL, *item;
    size_t i;
    int r;

    for (i = 0; i < count; i++)
        (void)json_array_append_new(
            nodes, json_pack("[I, b]", (json_int_t)held[i].node, (int)held[i].writes));
    r = view_request(view, json_pack("{s:s, s:o}", "do", "judge", "nodes", nodes), &answer, err);
    if (r == 0)
        r = json_get_array(answer, "files", &files, err);
    if (r < 0)
        return r;
    json_array_foreach(files, i, item) {
        if (i == count)
            break;
        held[i].has_too_much = json_is_true(json_array_get(item, 0));
        held[i].is_open = json_is_true(json_array_get(item, 1));
    }
    return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Keeps the first denials of the time that is summed up. */
static void denials_collect(struct view *view, const json_t *message)
{
    json_t *item;
    size_t i;

    if (!view->denials) {
        const uint64_t now_ms = clock_ms(), next_ms = view->denials_due_ms + DENIALS_PAUSE_MS;

        view->denials = json_array();
        view->denials_due_ms = view->denials_due_ms > 0 && next_ms > now_ms + DENIALS_FIRST_MS
                                   ? next_ms
                                   : now_ms + DENIALS_FIRST_MS;
    }
    view->denied_total = (uint64_t)json_integer_value(json_object_get(message, "total"));
    json_array_foreach(json_object_get(message, "last"), i, item) {
        if (json_array_size(view->denials) < DENIALS_MAX)
            (void)json_array_append(view->denials, item);
    }
}

static struct view *view_with_denials(const struct views *views, uint64_t now_ms)
{
    struct view *view = views->list;

    while (view && (!view->denials || view->denials_due_ms > now_ms))
        view = view->next;
    return view;
}

static void denials_tell(struct views *views)
{
    struct view *view;

    while ((view = view_with_denials(views, clock_ms()))) {
        cleanup_json json_t *denials = TAKE_PTR(view->denials);
        const uint64_t count = view->denied_total - view->denied;
        char id[VIEW_ID_MAX + 1];

        view->denied = view->denied_total;
        memcpy(id, view->id, sizeof(id));
        lock_release(&views->lock);
        if (views->events.denied)
            views->events.denied(views->events.context, id, denials, count);
        lock_take(&views->lock);
    }
}

/* Takes the message. The views are locked. */
static void message_handle(struct view *view, json_t *message)
{
    cleanup_json json_t *owned = message;
    const char *word = json_string_value(json_object_get(owned, "do"));
    const uint64_t sequence = (uint64_t)json_integer_value(json_object_get(owned, "sequence"));

    view->answer_ms = clock_ms();
    if (view->awaited != 0 && sequence == view->awaited && !view->answer) {
        view->answer = json_incref(owned);
        cond_broadcast(&view->views->answered);
    }
    if (word && strcmp(word, "denials") == 0)
        denials_collect(view, owned);
    else if (word && strcmp(word, "unmounted") == 0)
        view->is_unmounted = true;
}

/* Nobody waits for the process here: its end may write a whole file system out. */
static void view_end(struct view *view, const char *reason)
{
    struct views *views = view->views;
    char id[VIEW_ID_MAX + 1];

    view->fd = fd_close(view->fd);
    view_kill(view);
    cond_broadcast(&views->answered);
    if (!views->events.died || view->is_unmounted)
        return;
    memcpy(id, view->id, sizeof(id));
    lock_release(&views->lock);
    views->events.died(views->events.context, id, reason);
    lock_take(&views->lock);
}

/* Reads one message, if there is one. Fails at the end of the connection. */
static int message_receive(int fd, char *text, json_t **ret)
{
    struct err err = { 0 };
    const ssize_t n = recv(fd, text, VIEW_MESSAGE_MAX, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n > 0 && json_parse_object(text, (size_t)n, ret, &err) == 0 ? 0 : -ECONNRESET;
}

/* --- thread ----------------------------------------------------------------------------------- */

struct watch {
    struct pollfd *fds;
    size_t count, max;
    uint64_t ping_ms;
    char *text;
};

/* Lists what to wait for: the wake-up first. The views are locked. */
static void watch_list(struct views *views, struct watch *watch)
{
    watch->count = 0;
    for (const struct view *view = views->list; view; view = view->next)
        watch->count += view->fd >= 0;
    if (watch->count + 1 > watch->max) {
        watch->max = (watch->count + 1) * 2;
        watch->fds = xreallocarray(watch->fds, watch->max, sizeof(*watch->fds));
    }
    watch->count = 0;
    watch->fds[watch->count++] = (struct pollfd){ .fd = views->wake_fd, .events = POLLIN };
    for (const struct view *view = views->list; view; view = view->next)
        if (view->fd >= 0)
            watch->fds[watch->count++] = (struct pollfd){ .fd = view->fd, .events = POLLIN };
}

static struct view *view_by_fd(const struct views *views, int fd)
{
    struct view *view = views->list;

    while (view && view->fd != fd)
        view = view->next;
    return view;
}

/* The list may change whenever an event is told, so each view is looked for. */
static void watch_read(struct views *views, struct watch *watch)
{
    for (size_t i = 1; i < watch->count; i++) {
        struct view *view = watch->fds[i].revents ? view_by_fd(views, watch->fds[i].fd) : NULL;
        json_t *message = NULL;

        if (view && message_receive(view->fd, watch->text, &message) < 0)
            view_end(view, "it has ended");
        else if (message)
            message_handle(view, message);
    }
}

static struct view *view_silent(const struct views *views, uint64_t now_ms)
{
    struct view *view = views->list;

    while (view && (view->fd < 0 || view->answer_ms + SILENT_MS > now_ms))
        view = view->next;
    return view;
}

/* Asks every view for a sign of life, and ends those that have given none for too long. */
static void watch_ping(struct views *views, struct watch *watch)
{
    const uint64_t now_ms = clock_ms();
    /* This thread itself may have been kept from looking for messages. */
    const bool is_late = now_ms > watch->ping_ms + 2 * (uint64_t)PING_MS;
    struct view *silent;

    if (now_ms < watch->ping_ms + PING_MS)
        return;
    watch->ping_ms = now_ms;
    for (struct view *view = views->list; view; view = view->next) {
        if (is_late)
            view->answer_ms = now_ms;
        if (view->fd >= 0)
            (void)view_send(view, json_pack("{s:s}", "do", "ping"), MSG_DONTWAIT);
    }
    while ((silent = view_silent(views, now_ms)))
        view_end(silent, "it did not answer");
}

/* Frees views whose processes have ended. */
static void views_reap(struct views *views, bool waits)
{
    struct view **slot = &views->ending, *view;

    while ((view = *slot)) {
        if (view_has_ended(view, waits)) {
            *slot = view->next;
            view_free(view);
        } else {
            slot = &view->next;
        }
    }
}

static void views_main(void *argument)
{
    struct views *views = argument;
    struct watch watch = { .text = xcalloc(1, (size_t)VIEW_MESSAGE_MAX) };
    uint64_t ignored;

    lock_take(&views->lock);
    while (!views->is_stopping) {
        const bool has_work = views->ending;

        watch_list(views, &watch);
        lock_release(&views->lock);
        (void)poll(watch.fds, watch.count, watch.count > 1 || has_work ? PING_MS : -1);
        if (watch.fds[0].revents)
            (void)!read(views->wake_fd, &ignored, sizeof(ignored));
        lock_take(&views->lock);
        watch_read(views, &watch);
        watch_ping(views, &watch);
        denials_tell(views);
        views_reap(views, false);
    }
    views_reap(views, true);
    lock_release(&views->lock);
    free(watch.fds);
    free(watch.text);
}

int views_start(int sockets_fd, const struct view_events *events, struct views **ret,
                struct err *err)
{
    struct views *views = xcalloc(1, sizeof(*views));
    int r;

    views->sockets_fd = sockets_fd;
    views->events = *events;
    lock_init(&views->lock, LOCK_VIEWS);
    cond_init(&views->answered);
    views->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = views->wake_fd < 0 ? -errno : thread_start(&views->thread, "views", views_main, views);
    if (r < 0) {
        views_stop(views);
        return err_sys(err, r, "start the thread of the file servers");
    }
    *ret = views;
    return 0;
}

void views_stop(struct views *views)
{
    if (!views)
        return;
    lock_take(&views->lock);
    views->is_stopping = true;
    lock_release(&views->lock);
    views_wake(views);
    thread_join(&views->thread);
    (void)fd_close(views->wake_fd);
    cond_destroy(&views->answered);
    lock_destroy(&views->lock);
    free(views);
}

static bool view_is_known(struct views *views, const char *id)
{
    lock_scope(&views->lock);

    for (const struct view *view = views->list; view; view = view->next)
        if (strcmp(view->id, id) == 0)
            return true;
    return false;
}

void views_sweep(struct views *views)
{
    int fd = openat(views->sockets_fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    char id[VIEW_ID_MAX + 1];
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (view_socket_id(entry->d_name, id) && !view_is_known(views, id))
            view_socket_remove(views, id);
    if (dir)
        (void)closedir(dir);
}

/* --- start and end ---------------------------------------------------------------------------- */

int view_start(struct views *views, const struct view_start *start, int *ret_mount_fd,
               struct view **ret, struct err *err)
{
    struct view *view = view_new(views, start->id);
    cleanup_close int mount_fd = -EBADF;
    size_t open;
    int r = view_process_start(views, start, view, &mount_fd, err);

    if (r < 0) {
        view_free(view);
        return r;
    }
    view_add(view);
    r = view_set_rules(view, start->rules, start->generation, &open, err);
    if (r < 0) {
        view_stop(view);
        return r;
    }
    *ret_mount_fd = TAKE_FD(mount_fd);
    *ret = view;
    return 0;
}

int view_adopt(struct views *views, const char *id, const char *rules, uint64_t generation,
               struct view **ret, struct err *err)
{
    struct view *view = view_new(views, id);
    size_t open;
    int r = view_process_connect(views, view, err);

    if (r < 0) {
        view_free(view);
        return r;
    }
    view_add(view);
    r = view_set_rules(view, rules, generation, &open, err);
    if (r < 0) {
        view_stop(view);
        return r;
    }
    *ret = view;
    return 0;
}

void view_stop(struct view *view)
{
    struct views *views = view ? view->views : NULL;

    if (!view)
        return;
    view_remove(view);
    view_socket_remove(views, view->id);
    view_kill(view);
    view->fd = fd_close(view->fd);
    lock_scope(&views->lock);
    view->next = views->ending;
    views->ending = view;
    views_wake(views);
}

void view_release(struct view *view)
{
    if (!view)
        return;
    view_remove(view);
    view_free(view);
}
