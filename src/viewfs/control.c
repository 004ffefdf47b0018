// SPDX-License-Identifier: Apache-2.0
#include "viewfs/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "kernel/fds.h"
#include "viewfs/viewfs_internal.h"

static int message_send(int fd, json_t *message)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    ssize_t n = text ? fds_send(fd, text, strlen(text), MSG_DONTWAIT, NULL, 0) : -ENOMEM;

    return n < 0 ? (int)n : 0;
}

/* --- open files ------------------------------------------------------------------------------- */

static bool handle_has_too_much(struct viewfs *fs, struct handle *handle,
                                enum view_level *ret_level)
{
    *ret_level = node_decide(fs, handle->node).level;
    return *ret_level < (handle->access == O_RDONLY ? VIEW_READ : VIEW_WRITE);
}

/* Returns how many open files have more than the rules grant; lists some (NULL: none). */
static size_t holders_list(struct viewfs *fs, json_t *list)
{
    enum view_level level;
    char path[NODE_PATH_SIZE];
    size_t count = 0;

    lock_scope(&fs->handles_lock);
    for (struct handle *handle = fs->handles; handle; handle = handle->next) {
        if (!handle_has_too_much(fs, handle, &level))
            continue;
        count++;
        if (list && json_array_size(list) < VIEW_HOLDERS_MAX &&
            node_path(&fs->tree, handle->node, NULL, path))
            (void)json_array_append_new(list, json_pack("{s:o, s:I, s:s}", "path", json_text(path),
                                                        "pid", (json_int_t)handle->pid, "level",
                                                        view_level_name(level)));
    }
    return count;
}

/* --- files that are held, open or not --------------------------------------------------------- */

struct judging {
    struct tree *tree;
    uint64_t ids[VIEW_JUDGED_MAX];
    struct node *nodes[VIEW_JUDGED_MAX]; /* NULL: not known, or without a name */
    size_t count;
};

/* Node ids are addresses: only those of nodes are followed. */
static void judging_find(const struct node *node, void *context)
{
    struct judging *judging = context;

    for (size_t i = 0; i < judging->count; i++)
        if (judging->ids[i] == node_id(judging->tree, node))
            judging->nodes[i] = node_from_id(judging->tree, judging->ids[i]);
}

static json_t *judge_reply(struct viewfs *fs, const json_t *message, json_int_t sequence)
{
    static struct judging judging;
    const json_t *nodes = json_object_get(message, "nodes"), *item;
    json_t *files = json_array();
    size_t i;

    judging = (struct judging){ .tree = &fs->tree };
    json_array_foreach(nodes, i, item) {
        if (i == VIEW_JUDGED_MAX)
            break;
        judging.ids[judging.count++] = (uint64_t)json_integer_value(json_array_get(item, 0));
    }
    (void)pthread_rwlock_rdlock(&fs->names);
    tree_each(&fs->tree, judging_find, &judging);
    for (i = 0; i < judging.count; i++) {
        const bool writes = json_is_true(json_array_get(json_array_get(nodes, i), 1));
        struct node *node = judging.nodes[i];
        const bool has_too_much =
            node && node_decide(fs, node).level < (writes ? VIEW_WRITE : VIEW_READ);

        (void)json_array_append_new(
            files, json_pack("[b, b]", (int)has_too_much, node && node->handles > 0));
    }
    (void)pthread_rwlock_unlock(&fs->names);
    return json_pack("{s:s, s:I, s:o}", "do", "judge", "sequence", sequence, "files", files);
}

/* --- requests --------------------------------------------------------------------------------- */

static int rules_apply(struct viewfs *fs, const json_t *message, size_t *ret_open)
{
    cleanup_view_rules struct view_rules *rules = NULL;
    const char *text = "";
    uint64_t generation = 0;
    struct err err = { 0 };
    struct view_rules *old;

    if (json_get_text(message, "rules", &text, &err) < 0 ||
        json_get_u64(message, "generation", &generation, &err) < 0 ||
        view_rules_parse(text, generation, &rules, &err) < 0) {
        log_error("holt-view: the rules cannot be used: %s", err.msg);
        return -EINVAL;
    }
    (void)pthread_rwlock_wrlock(&fs->names);
    old = fs->rules;
    fs->rules = TAKE_PTR(rules);
    fs->stamp++;
    (void)pthread_rwlock_unlock(&fs->names);
    view_rules_free(old);
    notify_rules(fs);
    (void)pthread_rwlock_rdlock(&fs->names);
    *ret_open = holders_list(fs, NULL);
    (void)pthread_rwlock_unlock(&fs->names);
    return 0;
}

static json_t *holders_reply(struct viewfs *fs, json_int_t sequence)
{
    json_t *list = json_array();

    (void)pthread_rwlock_rdlock(&fs->names);
    (void)holders_list(fs, list);
    (void)pthread_rwlock_unlock(&fs->names);
    return json_pack("{s:s, s:I, s:o}", "do", "holders", "sequence", sequence, "files", list);
}

/* Returns -errno for a message that cannot be answered. */
static int message_handle(struct viewfs *fs, int fd, const json_t *message)
{
    const char *word = "";
    uint64_t sequence = 0;
    struct err err = { 0 };
    size_t open = 0;
    int r;

    if (json_get_text(message, "do", &word, &err) < 0 ||
        json_get_u64(message, "sequence", &sequence, &err) < 0)
        return -EINVAL;
    if (strcmp(word, "ping") == 0)
        return message_send(
            fd, json_pack("{s:s, s:I}", "do", "ping", "sequence", (json_int_t)sequence));
    if (strcmp(word, "holders") == 0)
        return message_send(fd, holders_reply(fs, (json_int_t)sequence));
    if (strcmp(word, "judge") == 0)
        return message_send(fd, judge_reply(fs, message, (json_int_t)sequence));
    if (strcmp(word, "rules") != 0)
        return -EINVAL;
    r = rules_apply(fs, message, &open);
    return r < 0 ? r
                 : message_send(fd, json_pack("{s:s, s:I, s:I}", "do", "rules", "sequence",
                                              (json_int_t)sequence, "open", (json_int_t)open));
}

int control_receive(struct viewfs *fs, int fd)
{
    cleanup_json json_t *message = NULL;
    cleanup_free char *text = malloc(VIEW_MESSAGE_MAX);
    struct err err = { 0 };
    ssize_t n = text ? recv(fd, text, VIEW_MESSAGE_MAX, 0) : -1;

    if (n <= 0 || json_parse_object(text, (size_t)n, &message, &err) < 0)
        return -ECONNRESET;
    return message_handle(fs, fd, message);
}

/* --- denials ---------------------------------------------------------------------------------- */

static json_t *denials_message(const struct denial *list, size_t count, uint64_t total)
{
    json_t *last = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            last, json_pack("{s:o, s:s, s:i, s:s, s:I}", "path", json_text(list[i].path),
                            "operation", list[i].operation, "rule", list[i].rule, "level",
                            view_level_name((enum view_level)list[i].level), "pid",
                            (json_int_t)list[i].pid));
    return json_pack("{s:s, s:I, s:o}", "do", "denials", "total", (json_int_t)total, "last", last);
}

/* Without a connection they are kept, as far as there is room. */
static void denials_send(struct viewfs *fs, int fd, uint64_t *sent)
{
    static struct denial list[DENIALS_KEPT];
    uint64_t total;
    size_t count;

    if (fd < 0)
        return;
    count = denials_take(&fs->denials, list, &total);
    if (total != *sent)
        (void)message_send(fd, denials_message(list, count, total));
    *sent = total;
}

void control_say_unmounted(struct viewfs *fs)
{
    (void)message_send(atomic_load(&fs->control_fd), json_pack("{s:s}", "do", "unmounted"));
}

void control_run(struct viewfs *fs, int control_fd, int listen_fd)
{
    uint64_t sent = 0, due_ms = 0;

    atomic_store(&fs->control_fd, control_fd);
    for (;;) {
        struct pollfd wait[] = { { .fd = listen_fd, .events = POLLIN },
                                 { .fd = control_fd, .events = POLLIN } };

        (void)poll(wait, ARRAY_SIZE(wait), VIEW_DENIALS_MS);
        if (wait[1].revents && control_receive(fs, control_fd) < 0)
            control_fd = fd_close(control_fd);
        if (wait[0].revents) {
            (void)fd_close(control_fd);
            control_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        }
        atomic_store(&fs->control_fd, control_fd);
        if (clock_ms() < due_ms)
            continue;
        denials_send(fs, control_fd, &sent);
        due_ms = clock_ms() + VIEW_DENIALS_MS;
    }
}
