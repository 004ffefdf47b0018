// SPDX-License-Identifier: Apache-2.0
/* Files of a sandbox through its workers: every operation, and every refusal. */
#include "kernel/host/file_world.h"

static struct sandbox *box;

static void a_file_is_written_read_and_described(void)
{
    struct buf data = BUF_INIT(CONTENT_MAX);
    const struct file_request read = { .type = FILE_READ, .path = "hello" };
    struct outcome_of_file outcome = file_put_text(box, "hello", "hello, world\n", 0);

    CHECK(outcome.r == 0, "(%s)", outcome.err.msg);
    CHECK(outcome.entry.size == 13 && outcome.entry.mode == 0644 && outcome.entry.uid == 0);
    CHECK(strcmp(world_cat(box, "/workspace/hello"), "hello, world") == 0);
    outcome = ask(box, &read, &data);
    CHECK(outcome.r == 0 && data.len == 13 && memcmp(data.data, "hello, world\n", 13) == 0);
    CHECK(outcome.entry.type == ENTRY_FILE);
    outcome = ask_path(box, FILE_STAT, "/workspace/hello", 0);
    CHECK(outcome.r == 0 && outcome.entry.links == 1 && outcome.entry.inode > 0);
    CHECK_DONE(ask_path(box, FILE_REMOVE, "hello", 0));
    CHECK_REFUSED(ask_path(box, FILE_STAT, "hello", 0), ERR_NOT_FOUND);
    buf_done(&data);
}

static void parts_are_read_and_written(void)
{
    const struct file_request at = {
        .type = FILE_WRITE, .path = "parts", .flags = FILE_AT_OFFSET, .offset = 3
    };
    const struct file_request part = {
        .type = FILE_READ, .path = "parts", .offset = 2, .length = 4
    };
    struct buf data = BUF_INIT(CONTENT_MAX);

    CHECK_DONE(file_put_text(box, "parts", "0123456789", 0));
    CHECK_DONE(put(box, &at, "abc", 3));
    CHECK_DONE(file_put_text(box, "parts", "!", FILE_APPEND));
    CHECK(strcmp(world_cat(box, "/workspace/parts"), "012abc6789!") == 0);
    CHECK_DONE(ask(box, &part, &data));
    CHECK(data.len == 4 && memcmp(data.data, "2abc", 4) == 0);
    CHECK_REFUSED(file_put_text(box, "parts", "x", FILE_EXCLUSIVE), ERR_EXISTS);
    CHECK_DONE(file_put_text(box, "parts", "short", 0));
    CHECK(strcmp(world_cat(box, "/workspace/parts"), "short") == 0);
    buf_done(&data);
}

/* Whoever reads sees the old file or the new one, and a file's mode and owner stay. */
static void an_atomic_write_replaces_a_file_at_once(void)
{
    struct file_call *call;
    const struct file_request request = { .type = FILE_WRITE, .path = "a", .flags = FILE_ATOMIC };
    struct outcome_of_file outcome;
    struct err err = { 0 };

    CHECK(world_sh(box, "echo old > a && busybox chmod 751 a && busybox chown 7:8 a && ln -s a la",
                   NULL) == 0);
    call = call_open(box);
    CHECK_OK(file_call_send_request(call, &request, &err), &err);
    CHECK_OK(file_call_send_data(call, "half", 4, &err), &err);
    file_call_close(call); /* which is the end of it */
    CHECK(strcmp(world_cat(box, "/workspace/a"), "old") == 0);
    CHECK(world_sh(box, "test -z \"$(ls -A | busybox grep holt)\"", NULL) == 0);
    outcome = file_put_text(box, "la", "new", FILE_ATOMIC);
    CHECK(outcome.r == 0 && outcome.entry.mode == 0751 && outcome.entry.uid == 7 &&
          outcome.entry.gid == 8);
    CHECK(strcmp(world_cat(box, "/workspace/a"), "new") == 0);
    CHECK(ask_path(box, FILE_STAT, "la", 0).entry.type == ENTRY_LINK);
}

static void directories_are_made_moved_and_removed(void)
{
    const struct file_request move = {
        .type = FILE_MOVE, .path = "d", .to = "e/f/g", .flags = FILE_PARENTS
    };

    CHECK_REFUSED(ask_path(box, FILE_MKDIR, "d/d/d", 0), ERR_NOT_FOUND);
    CHECK_DONE(ask_path(box, FILE_MKDIR, "d/d/d", FILE_PARENTS));
    CHECK_DONE(ask_path(box, FILE_MKDIR, "d/d/d", FILE_PARENTS));
    CHECK_REFUSED(ask_path(box, FILE_MKDIR, "d/d/d", 0), ERR_EXISTS);
    CHECK_DONE(ask(box, &move, NULL));
    CHECK(ask_path(box, FILE_STAT, "e/f/g/d/d", 0).entry.type == ENTRY_DIRECTORY);
    CHECK_REFUSED(ask_path(box, FILE_REMOVE, "e", 0), ERR_INVALID);
    CHECK_DONE(ask_path(box, FILE_REMOVE, "e", FILE_RECURSIVE));
    CHECK_REFUSED(ask_path(box, FILE_REMOVE, "e", FILE_RECURSIVE), ERR_NOT_FOUND);
    CHECK_DONE(ask_path(box, FILE_REMOVE, "e", FILE_RECURSIVE | FILE_MISSING_OK));
    CHECK_REFUSED(ask_path(box, FILE_REMOVE, "/", FILE_RECURSIVE), ERR_BUSY);
}

/* overlayfs cannot rename a directory of a template; the old content must survive. */
static void a_directory_of_the_template_is_moved(void)
{
    const struct file_request there = { .type = FILE_MOVE, .path = "/bin", .to = "/bin2" };
    const struct file_request back = { .type = FILE_MOVE, .path = "/bin2", .to = "/bin" };

    CHECK_DONE(ask(box, &there, NULL));
    CHECK(ask_path(box, FILE_STAT, "/bin2/busybox", 0).entry.mode == 0755);
    CHECK(strcmp(ask_path(box, FILE_STAT, "/bin2/sh", 0).target, "busybox") == 0);
    CHECK_REFUSED(ask_path(box, FILE_STAT, "/bin", 0), ERR_NOT_FOUND);
    CHECK_DONE(ask(box, &back, NULL));
    CHECK(strcmp(world_cat(box, "/etc/origin"), "template") == 0);
}

static void a_move_replaces_only_when_asked(void)
{
    struct file_request move = { .type = FILE_MOVE, .path = "m1", .to = "m2" };

    CHECK_DONE(file_put_text(box, "m1", "1", 0));
    CHECK_DONE(file_put_text(box, "m2", "2", 0));
    CHECK_REFUSED(ask(box, &move, NULL), ERR_EXISTS);
    move.flags = FILE_REPLACE;
    CHECK_DONE(ask(box, &move, NULL));
    CHECK(strcmp(world_cat(box, "/workspace/m2"), "1") == 0);
}

/* Lists and joins the paths with spaces; how many there were. */
static size_t list(const struct file_request *request, char *ret, size_t size, uint32_t *ret_more)
{
    struct file_call *call = call_open(box);
    struct file_answer answer;
    struct err err = { 0 };
    size_t count = 0, used = 0;
    int r;

    ret[0] = '\0';
    CHECK_OK(file_call_send_request(call, request, &err), &err);
    while ((r = file_call_next(call, &answer, &err)) > 0) {
        count++;
        if (used < size)
            used += (size_t)snprintf(ret + used, size - used, "%s ", answer.entry.path);
    }
    CHECK_OK(r, &err);
    *ret_more = answer.number;
    file_call_close(call);
    return count;
}

static void a_listing_is_in_order_and_comes_in_pages(void)
{
    struct file_request request = { .type = FILE_LIST, .path = "l", .depth = 9, .limit = 100 };
    char text[4096];
    uint32_t more;

    CHECK(world_sh(box, "mkdir -p l/a l/a-b l/c && touch l/a/x l/a/y l/c/z l/b && ln -s / l/c/root",
                   NULL) == 0);
    CHECK(list(&request, text, sizeof(text), &more) == 8 && more == 0);
    CHECK(strcmp(text, "a a/x a/y a-b b c c/root c/z ") == 0, "(%s)", text);
    request.limit = 3;
    CHECK(list(&request, text, sizeof(text), &more) == 3 && more == 1);
    CHECK(strcmp(text, "a a/x a/y ") == 0);
    request.after = "a/y";
    CHECK(list(&request, text, sizeof(text), &more) == 3 && more == 1);
    CHECK(strcmp(text, "a-b b c ") == 0, "(%s)", text);
    request.after = "c";
    CHECK(list(&request, text, sizeof(text), &more) == 2 && more == 0);
    CHECK(strcmp(text, "c/root c/z ") == 0, "(%s)", text);
    request = (struct file_request){ .type = FILE_LIST, .path = "l", .limit = 100 };
    CHECK(list(&request, text, sizeof(text), &more) == 4);
    CHECK(strcmp(text, "a a-b b c ") == 0, "(%s)", text);
    CHECK_REFUSED(ask_path(box, FILE_LIST, "l/b", 0), ERR_INVALID);
}

static void a_huge_directory_is_listed(void)
{
    const struct file_request request = { .type = FILE_LIST,
                                          .path = "/dev/shm/huge",
                                          .limit = 1000000 };
    char text[64];
    uint32_t more;

    CHECK(world_sh(box,
                   "mkdir /dev/shm/huge && cd /dev/shm/huge && busybox seq 1 100000 | busybox "
                   "xargs -n 5000 touch",
                   NULL) == 0);
    CHECK(list(&request, text, sizeof(text), &more) == 100000 && more == 0);
    CHECK_DONE(ask_path(box, FILE_REMOVE, "/dev/shm/huge", FILE_RECURSIVE));
}

static void what_is_no_regular_file_is_neither_read_nor_written(void)
{
    CHECK(world_sh(box, "busybox mkfifo p && ln -s loop loop && mkdir dir", NULL) == 0);
    CHECK_REFUSED(ask_path(box, FILE_READ, "p", 0), ERR_INVALID);
    CHECK_REFUSED(file_put_text(box, "p", "x", 0), ERR_INVALID);
    CHECK_REFUSED(file_put_text(box, "p", "x", FILE_ATOMIC), ERR_INVALID);
    CHECK_REFUSED(ask_path(box, FILE_READ, "/dev/zero", 0), ERR_INVALID);
    CHECK_REFUSED(file_put_text(box, "/dev/full", "x", 0), ERR_INVALID);
    CHECK_REFUSED(ask_path(box, FILE_READ, "dir", 0), ERR_INVALID);
    CHECK_REFUSED(file_put_text(box, "dir", "x", 0), ERR_INVALID);
    CHECK_REFUSED(ask_path(box, FILE_READ, "loop", 0), ERR_INVALID);
    CHECK_REFUSED(ask_path(box, FILE_READ, "none", 0), ERR_NOT_FOUND);
    CHECK_REFUSED(ask_path(box, FILE_READ, "hello/none/x", 0), ERR_NOT_FOUND);
    CHECK(ask_path(box, FILE_STAT, "p", 0).entry.type == ENTRY_PIPE);
    CHECK(ask_path(box, FILE_STAT, "/dev/null", 0).entry.type == ENTRY_CHARACTER_DEVICE);
    CHECK(strcmp(ask_path(box, FILE_STAT, "loop", 0).target, "loop") == 0);
}

static void files_of_proc_are_read(void)
{
    const struct file_request request = { .type = FILE_READ, .path = "/proc/self/status" };
    struct buf data = BUF_INIT(CONTENT_MAX);
    struct outcome_of_file outcome = ask(box, &request, &data);

    CHECK(outcome.r == 0, "(%s)", outcome.err.msg);
    CHECK(outcome.entry.size == 0 && data.len > 100 && strstr(data.data, "holt-files"));
    buf_done(&data);
}

static void paths_at_the_limit_are_refused_with_their_name(void)
{
    char path[ENTRY_PATH_MAX + 2];

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    CHECK_REFUSED(ask_path(box, FILE_STAT, path, 0), ERR_INVALID);
    path[ENTRY_PATH_MAX] = '\0';
    CHECK_REFUSED(ask_path(box, FILE_STAT, path, 0), ERR_INVALID);
    path[300] = '\0';
    CHECK_REFUSED(ask_path(box, FILE_STAT, path, 0), ERR_INVALID);
    CHECK_REFUSED(ask_path(box, FILE_STAT, "", 0), ERR_INVALID);
}

static void a_user_has_only_his_own_rights(void)
{
    struct file_request request = { .type = FILE_WRITE, .user = "mouse" };
    struct outcome_of_file outcome;

    CHECK(world_sh(box,
                   "echo 'mouse:x:77:78::/:' > /etc/passwd && "
                   "printf 'mice:x:78:\\nfield:x:90:cat,mouse\\n' > /etc/group && "
                   "mkdir u && busybox chown 0:90 u && busybox chmod 770 u && "
                   "echo secret > s && busybox chmod 600 s",
                   NULL) == 0);
    request.path = "u/mine";
    outcome = put(box, &request, "x", 1);
    CHECK(outcome.r == 0 && outcome.entry.uid == 77 && outcome.entry.gid == 78, "(%s)",
          outcome.err.msg);
    CHECK(strcmp(outcome.user_name, "mouse") == 0 && strcmp(outcome.group_name, "mice") == 0);
    request.path = "/not-mine";
    CHECK_REFUSED(put(box, &request, "x", 1), ERR_DENIED);
    request = (struct file_request){ .type = FILE_READ, .path = "s", .user = "77" };
    CHECK_REFUSED(ask(box, &request, NULL), ERR_DENIED);
    request.user = "nobody-here";
    CHECK_REFUSED(ask(box, &request, NULL), ERR_NOT_FOUND);
    request.user = "";
    CHECK_DONE(ask(box, &request, NULL)); /* the same worker is root again */
}

static void paths_begin_at_a_users_home(void)
{
    struct file_request request = {
        .type = FILE_WRITE, .path = "a/../b", .user = "hedgehog", .flags = FILE_FROM_HOME
    };
    struct outcome_of_file done;

    CHECK_REFUSED(put(box, &request, "x", 1), ERR_NOT_FOUND);
    request.user = "mouse";
    CHECK(world_sh(box,
                   "echo 'mouse:x:77:78::/home/mouse:/bin/sh' > /etc/passwd && "
                   "mkdir -p /root /home/mouse && busybox chown 77 /home/mouse",
                   NULL) == 0);
    done = put(box, &request, "x", 1);
    CHECK(done.r == 0 && done.entry.uid == 77, "(%s)", done.err.msg);
    CHECK(strcmp(done.path, "/home/mouse/b") == 0);
    /* Who moves is at home elsewhere at once. */
    CHECK(world_sh(box, "echo 'mouse:x:77:78::/tmp:/bin/sh' > /etc/passwd", NULL) == 0);
    request.type = FILE_STAT;
    request.path = "~/../home/mouse/b";
    done = ask(box, &request, NULL);
    CHECK(done.r == 0 && strcmp(done.path, "/home/mouse/b") == 0, "(%s)", done.err.msg);
    request.path = "b";
    CHECK_REFUSED(ask(box, &request, NULL), ERR_NOT_FOUND);
    request = (struct file_request){
        .type = FILE_STAT, .path = ".", .user = "cat:dog:0", .flags = FILE_FROM_HOME
    };
    CHECK(strcmp(ask(box, &request, NULL).path, "/root") == 0);
}

/* With FILE_GIVE the user's rights do not apply, but new files belong to the user. */
static void what_is_given_belongs_to_the_user(void)
{
    struct file_request request = {
        .type = FILE_WRITE, .path = "/shut/new/f", .user = "88", .flags = FILE_GIVE | FILE_PARENTS
    };
    struct outcome_of_file done;

    CHECK(world_sh(box, "mkdir /shut && busybox chmod 700 /shut && echo old > /shut/old", NULL) ==
          0);
    done = put(box, &request, "x", 1);
    CHECK(done.r == 0 && done.entry.uid == 88 && done.entry.gid == 88, "(%s)", done.err.msg);
    CHECK(ask_path(box, FILE_STAT, "/shut/new", 0).entry.uid == 88);
    CHECK(ask_path(box, FILE_STAT, "/shut", 0).entry.uid == 0);
    request.path = "/shut/old";
    CHECK(put(box, &request, "x", 1).entry.uid == 88);
    request.flags = FILE_PARENTS;
    CHECK_REFUSED(put(box, &request, "x", 1), ERR_DENIED);
    /* The next request runs as root again. */
    CHECK(file_put_text(box, "/shut/mine", "x", 0).entry.uid == 0);
    CHECK(world_sh(box, "rm -r /shut", NULL) == 0);
}

static void what_is_said_of_a_file_stays_with_it(void)
{
    static const char meta[] = "kind\0a b\0owner\0me";
    struct file_request request = { .type = FILE_WRITE,
                                    .path = "m",
                                    .flags = FILE_DETAILS | FILE_HAS_META,
                                    .meta = meta,
                                    .meta_len = sizeof(meta) };
    struct outcome_of_file done = put(box, &request, "x", 1);

    CHECK(done.r == 0 && done.entry.meta_len == sizeof(meta), "(%s)", done.err.msg);
    CHECK(memcmp(done.meta, meta, sizeof(meta)) == 0);
    CHECK(world_sh(box,
                   "busybox ln -s m /workspace/to-m && busybox ln -s nowhere /workspace/dangling",
                   NULL) == 0);
    done = ask_path(box, FILE_STAT, "to-m", FILE_DETAILS);
    CHECK(done.entry.type == ENTRY_LINK && done.entry.end_type == ENTRY_FILE);
    CHECK(done.entry.end_mode == 0644 && strcmp(done.end_path, "/workspace/m") == 0);
    CHECK(done.entry.meta_len == sizeof(meta));
    done = ask_path(box, FILE_STAT, "dangling", FILE_DETAILS);
    CHECK(done.entry.end_type == ENTRY_NONE && done.entry.meta_len == 0);
    /* Every write replaces all of it, and one that says nothing keeps it. */
    CHECK_DONE(file_put_text(box, "m", "y", 0));
    CHECK(ask_path(box, FILE_STAT, "m", FILE_DETAILS).entry.meta_len == sizeof(meta));
    request.meta = "";
    request.meta_len = 0;
    CHECK(put(box, &request, "z", 1).entry.meta_len == 0);
    CHECK(!ask_path(box, FILE_STAT, "m", 0).entry.meta);
}

/* More troubles than a worker keeps before it sends them. */
static void a_tree_of_which_nothing_may_be_read_is_copied_all_the_same(void)
{
    struct file_request pull = { .type = FILE_PULL, .path = "/shut", .user = "77" };

    CHECK(world_sh(box,
                   "mkdir /shut && cd /shut && busybox seq 30000 | busybox xargs busybox touch && "
                   "busybox chmod -R u=rwX,go= . && busybox chmod 755 .",
                   NULL) == 0);
    CHECK_DONE(ask(box, &pull, NULL));
    CHECK(world_sh(box, "rm -r /shut", NULL) == 0);
}

/* The same worker continues after a failure, and the sandbox's processes do not see it. */
static void workers_are_used_again(void)
{
    struct buf before = BUF_INIT(4096), after = BUF_INIT(4096);

    CHECK(world_sh(box, "mkdir -p dir", NULL) == 0);
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    CHECK(world_sh(box, "busybox pidof holt-files || busybox ps", &before) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK_REFUSED(ask_path(box, FILE_READ, "none", 0), ERR_NOT_FOUND);
        CHECK_REFUSED(file_put_text(box, "dir", "x", 0), ERR_INVALID);
    }
    CHECK(world_sh(box, "busybox pidof holt-files || busybox ps", &after) == 0);
    CHECK(before.len == after.len);
    buf_done(&before);
    buf_done(&after);
}

static void many_bytes_go_both_ways(void)
{
    enum { SIZE = 24 * 1024 * 1024 + 17 };
    char *bytes = malloc(SIZE);
    const struct file_request write = { .type = FILE_WRITE, .path = "big" };
    const struct file_request read = { .type = FILE_READ, .path = "big" };
    struct buf data = BUF_INIT(CONTENT_MAX);

    CHECK(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 ^ i >> 11);
    CHECK_DONE(put(box, &write, bytes, SIZE));
    CHECK_DONE(ask(box, &read, &data));
    CHECK(data.len == SIZE && memcmp(data.data, bytes, SIZE) == 0);
    CHECK_DONE(ask_path(box, FILE_REMOVE, "big", 0));
    buf_done(&data);
    free(bytes);
}

static void nothing_is_done_in_a_sandbox_that_is_not_active(void)
{
    struct file_call *call = NULL;
    struct err err = { 0 };

    CHECK_OK(sandbox_pause(box, &err), &err);
    CHECK(file_call_open(box, -1, false, &call, &err) < 0 && err.cause == CAUSE_SESSION_PAUSED);
    CHECK_OK(sandbox_resume(box, &err), &err);
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    CHECK_OK(sandbox_stop(box, &err), &err);
    CHECK(file_call_open(box, -1, false, &call, &err) < 0 && err.cause == CAUSE_INVALID_STATE);
    CHECK_OK(sandbox_start(box, &err), &err);
    CHECK_DONE(ask_path(box, FILE_STAT, "/etc/origin", 0));
}

static void a_rollback_ends_workers_and_brings_the_old_files(void)
{
    struct snapshot_info snapshot;
    struct file_answer answer;
    struct file_call *call;
    const struct file_request read = { .type = FILE_READ, .path = "/dev/../workspace/long" };
    struct err err = { 0 };
    int r;

    CHECK_DONE(file_put_text(box, "turn", "one", 0));
    CHECK_OK(sandbox_turn(box, &snapshot, &err), &err);
    CHECK_DONE(file_put_text(box, "turn", "two", 0));
    CHECK(world_sh(box, "dd if=/dev/zero of=long bs=1M count=32 2>/dev/null", NULL) == 0);
    call = call_open(box);
    CHECK_OK(file_call_send_request(call, &read, &err), &err);
    CHECK(file_call_next(call, &answer, &err) == 1 && answer.type == FILE_ENTRY);
    CHECK_OK(sandbox_rollback(box, snapshot.name, false, &err), &err);
    while ((r = file_call_next(call, &answer, &err)) > 0)
        continue;
    CHECK(r < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    file_call_close(call);
    CHECK(strcmp(world_cat(box, "/workspace/turn"), "one") == 0);
    CHECK(ask_path(box, FILE_STAT, "turn", 0).entry.size == 3);
    CHECK_REFUSED(ask_path(box, FILE_STAT, "long", 0), ERR_NOT_FOUND);
}

/* Waits for this event. One change may cause several events. */
static void await_event(struct file_call *call, enum file_event_kind kind, const char *path)
{
    struct file_answer answer;
    struct err err = { 0 };

    do
        CHECK(file_call_next(call, &answer, &err) == 1, "(%s)", err.msg);
    while (answer.event.kind != kind || strcmp(answer.event.path, path) != 0);
}

static void changes_are_watched(void)
{
    const struct file_request watch = { .type = FILE_WATCH, .path = "w", .flags = FILE_RECURSIVE };
    struct file_call *call;
    struct file_answer answer;
    struct err err = { 0 };

    CHECK(world_sh(box, "mkdir -p w/old", NULL) == 0);
    call = call_open(box);
    CHECK_OK(file_call_send_request(call, &watch, &err), &err);
    CHECK(file_call_next(call, &answer, &err) == 1 && answer.type == FILE_END);
    CHECK(world_sh(box, "cd w && echo x > old/f && busybox chmod 600 old/f", NULL) == 0);
    await_event(call, FILE_EVENT_CREATE, "old/f");
    await_event(call, FILE_EVENT_WRITE, "old/f");
    await_event(call, FILE_EVENT_CHMOD, "old/f");
    CHECK(world_sh(box, "cd w && mkdir -p n/n && echo y > n/n/g", NULL) == 0);
    await_event(call, FILE_EVENT_CREATE, "n/n/g");
    CHECK(world_sh(box, "cd w && mv old/f old/h && rm old/h", NULL) == 0);
    await_event(call, FILE_EVENT_RENAME, "old/f");
    await_event(call, FILE_EVENT_CREATE, "old/h");
    await_event(call, FILE_EVENT_REMOVE, "old/h");
    CHECK(world_sh(box, "cd w && mv n n2", NULL) == 0);
    await_event(call, FILE_EVENT_RENAME, "n");
    await_event(call, FILE_EVENT_CREATE, "n2");
    await_event(call, FILE_EVENT_CREATE, "n2/n/g");
    CHECK(world_sh(box, "cd w && echo z > n2/n/g", NULL) == 0);
    await_event(call, FILE_EVENT_WRITE, "n2/n/g");
    file_call_close(call);
    CHECK_REFUSED(ask_path(box, FILE_WATCH, "w/n2/n/g", 0), ERR_INVALID);
}

static void all(void)
{
    world_open("dir");
    world_import("small");
    box = world_create("files");
    RUN(a_file_is_written_read_and_described);
    RUN(parts_are_read_and_written);
    RUN(an_atomic_write_replaces_a_file_at_once);
    RUN(directories_are_made_moved_and_removed);
    RUN(a_directory_of_the_template_is_moved);
    RUN(a_move_replaces_only_when_asked);
    RUN(a_listing_is_in_order_and_comes_in_pages);
    RUN(a_huge_directory_is_listed);
    RUN(what_is_no_regular_file_is_neither_read_nor_written);
    RUN(files_of_proc_are_read);
    RUN(paths_at_the_limit_are_refused_with_their_name);
    RUN(a_user_has_only_his_own_rights);
    RUN(paths_begin_at_a_users_home);
    RUN(what_is_given_belongs_to_the_user);
    RUN(what_is_said_of_a_file_stays_with_it);
    RUN(a_tree_of_which_nothing_may_be_read_is_copied_all_the_same);
    RUN(workers_are_used_again);
    RUN(many_bytes_go_both_ways);
    RUN(nothing_is_done_in_a_sandbox_that_is_not_active);
    RUN(a_rollback_ends_workers_and_brings_the_old_files);
    RUN(changes_are_watched);
    world_destroy(box);
    world_close();
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(all);
    return 0;
}
