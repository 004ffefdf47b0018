// SPDX-License-Identifier: Apache-2.0
/* A foreign program that uses all of libholt; libholt_test compiles it against the installed files
 * and runs it with $HOLT_HOST. */
#include <holt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG_MS = 60 * 1000, BIG = 3 << 20 };

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            (void)printf("line %d: %s (%s: %s)\n", __LINE__, #claim, error.code, error.message);   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define IS(got, wanted) CHECK(strcmp((got), (wanted)) == 0)

static struct holt_error error;
static struct holt *holt;

static int64_t soon(void)
{
    return holt_after(LONG_MS);
}

static struct holt_command command_of(const char *const *args)
{
    struct holt_command command = HOLT_INIT(holt_command);

    command.args = args;
    return command;
}

#define COMMAND(...) command_of((const char *const[]){ __VA_ARGS__, NULL })

static void use_host(void)
{
    struct holt_capabilities *can;
    struct holt_health *health;

    CHECK(holt_health(holt, soon(), &health, &error) == 0);
    IS(health->status, "ok");
    CHECK(*health->version && *health->storage && !health->errors[0]);
    CHECK(holt_capabilities(holt, soon(), &can, &error) == 0);
    CHECK(can->snapshots && can->rollback && can->fork && can->pause && can->launch);
    CHECK(can->max_sandboxes > 0 && *can->default_runtime);
    IS(can->storage, health->storage);
    CHECK(can->runtime_count > 0 && can->runtimes[0]->works && *can->limits_from);
    CHECK(health->storage_size_bytes >= health->storage_used_bytes);
    CHECK(strncmp(holt_result_json(health), "{\"status\":\"ok\",", 15) == 0);
    holt_free(can);
    holt_free(health);
}

/* A signal of 0 is SIGTERM, as the specification of such calls says. */
static void use_resume_with(const char *sandbox)
{
    struct holt_command command = HOLT_INIT(holt_command);
    struct holt_process_info *info;
    struct holt_end *end;

    command.args = (const char *const[]){ "sleep", "1000", NULL };
    CHECK(holt_sandbox_resume_with(holt, sandbox, &command, soon(), &info, &error) == -1);
    IS(error.cause, "InvalidState");
    CHECK(holt_sandbox_pause(holt, sandbox, soon(), NULL, &error) == 0);
    CHECK(holt_sandbox_resume_with(holt, sandbox, &command, soon(), &info, &error) == 0);
    CHECK(info->is_running);
    CHECK(holt_process_signal(holt, sandbox, info->id, 0, soon(), &error) == 0);
    CHECK(holt_process_wait(holt, sandbox, info->id, soon(), &end, &error) == 0);
    CHECK(end->signal == SIGTERM);
    holt_free(end);
    holt_free(info);
}

static void use_sandboxes(void)
{
    const char *const labels[] = { "team=red", "n=1", NULL }, *const other[] = { "n=2", NULL };
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_sandbox *made, *again, *found;
    struct holt_sandbox_list *list;
    struct holt_stats_list *stats;

    options.name = "named";
    options.labels = labels;
    options.memory_bytes = 256 << 20;
    options.idempotency_key = "k1";
    CHECK(holt_sandbox_create(holt, &options, soon(), &made, &error) == 0);
    CHECK(holt_sandbox_create(holt, &options, soon(), &again, &error) == 0);
    IS(again->id, made->id);
    CHECK(again->is_joined && !made->is_joined);
    holt_free(again);
    options.idempotency_key = NULL;
    CHECK(holt_sandbox_create(holt, &options, soon(), &again, &error) == -1);
    IS(error.code, "already_exists");
    IS(error.cause, "SessionExists");
    CHECK(*error.remedy && !error.is_retryable);

    CHECK(holt_sandbox_get(holt, "named", soon(), &found, &error) == 0);
    IS(found->id, made->id);
    IS(found->name, "named");
    CHECK(found->state == HOLT_STATE_ACTIVE && found->memory_bytes == 256 << 20);
    CHECK(found->label_count == 2 && found->created_ms > 1700000000000);
    holt_free(found);

    CHECK(holt_sandbox_list(holt, labels, soon(), &list, &error) == 0);
    CHECK(list->count == 1 && strcmp(list->items[0]->id, made->id) == 0);
    holt_free(list);
    CHECK(holt_sandbox_list(holt, other, soon(), &list, &error) == 0 && list->count == 0);
    holt_free(list);

    CHECK(holt_sandbox_pause(holt, made->id, soon(), &found, &error) == 0);
    CHECK(found->state == HOLT_STATE_PAUSED);
    IS(holt_state_name(found->state), "paused");
    holt_free(found);
    CHECK(holt_sandbox_resume(holt, made->id, soon(), NULL, &error) == 0);
    use_resume_with(made->id);
    CHECK(holt_sandbox_stop(holt, made->id, soon(), NULL, &error) == 0);
    CHECK(holt_sandbox_start(holt, made->id, soon(), NULL, &error) == 0);
    CHECK(holt_stats(holt, (const char *const[]){ "named", NULL }, soon(), &stats, &error) == 0);
    CHECK(stats->count == 1 && stats->items[0]->memory_limit_bytes == 256 << 20);
    IS(stats->items[0]->state, "active");
    holt_free(stats);
    CHECK(holt_sandbox_destroy(holt, made->id, soon(), &error) == 0);
    CHECK(holt_sandbox_get(holt, made->id, soon(), &found, &error) == -1);
    IS(error.code, "not_found");
    CHECK(holt_sandbox_get(holt, NULL, soon(), &found, &error) == -1);
    IS(error.code, "invalid_argument");
    CHECK(holt_sandbox_get(holt, "\xff", soon(), &found, &error) == -1);
    IS(error.code, "invalid_argument");
    holt_free(made);
}

static int second_report(void *context, const struct holt_stats_list *list)
{
    int *count = context;

    CHECK(list->count == 1 && list->items[0]->has_cpu_millis == (*count > 0));
    CHECK(strncmp(holt_result_json(list), "{\"stats\":[", 10) == 0);
    return ++*count == 2;
}

static int count_line(void *context, const char *line)
{
    CHECK(line[strspn(line, " ")] == '{'); /* blanks move a line to the next page of the log */
    ++*(size_t *)context;
    return 0;
}

static void use_reports(const char *sandbox)
{
    struct holt_stats_options stats = HOLT_INIT(holt_stats_options);
    struct holt_audit_options audit = HOLT_INIT(holt_audit_options);
    const char *const sandboxes[] = { sandbox, NULL };
    struct holt_audit_verdict *verdict;
    size_t lines = 0;
    int count = 0;

    stats.sandboxes = sandboxes;
    stats.interval_ms = 100;
    stats.on_stats = second_report;
    stats.context = &count;
    CHECK(holt_stats_watch(holt, &stats, soon(), &error) == -1);
    IS(error.code, "canceled");
    CHECK(count == 2);
    audit.sandbox = sandbox;
    audit.on_line = count_line;
    audit.context = &lines;
    CHECK(holt_audit(holt, &audit, soon(), &verdict, &error) == 0);
    CHECK(verdict->is_intact && lines > 0 && verdict->lines >= lines);
    holt_free(verdict);
    audit.only_verifies = true;
    lines = 0;
    CHECK(holt_audit(holt, &audit, soon(), NULL, &error) == 0 && lines == 0);
}

static void use_ports(const char *sandbox)
{
    struct holt_forward_options options = HOLT_INIT(holt_forward_options);
    struct holt_forward *forward;
    struct holt_port_list *list;

    CHECK(holt_forward_open(holt, &options, soon(), &forward, &error) == -1);
    IS(error.code, "invalid_argument");
    CHECK(holt_preview_create(holt, sandbox, 0, soon(), NULL, &error) == -1);
    IS(error.code, "invalid_argument");
    options.sandbox = sandbox;
    options.port = 9000;
    CHECK(holt_forward_open(holt, &options, soon(), &forward, &error) == 0);
    CHECK(*holt_forward_address(forward));
    CHECK(holt_port_list(holt, sandbox, soon(), &list, &error) == 0);
    CHECK(list->count == 1 && list->items[0]->port == 9000 && list->items[0]->connections == 0);
    IS(list->items[0]->address, holt_forward_address(forward));
    holt_free(list);
    CHECK(holt_sandbox_stop(holt, sandbox, soon(), NULL, &error) == 0);
    CHECK(holt_forward_wait(forward, &error) == -1);
    IS(error.cause, "InvalidState");
    holt_forward_close(forward);
    CHECK(holt_sandbox_start(holt, sandbox, soon(), NULL, &error) == 0);
}

static int leave_at_once(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    (void)kind;
    (void)data;
    *(size_t *)context += len;
    return -1;
}

static void use_commands(const char *sandbox)
{
    struct holt_command command = COMMAND("sh", "-c", "cat; echo oops >&2; exit 7");
    char *big = calloc(1, BIG);
    struct holt_result *result;
    size_t taken = 0;

    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 7 + i / 251);
    command.input = big;
    command.input_len = BIG;
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->end->outcome == HOLT_EXITED && result->end->exit_code == 7);
    CHECK(result->stdout_len == BIG && memcmp(result->stdout_data, big, BIG) == 0);
    IS(result->stderr_data, "oops\n");
    CHECK(!result->is_cut && *result->process_id);
    holt_free(result);

    command.output_max = 1000;
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->is_cut && result->stdout_len == 1000);
    holt_free(result);

    command.on_output = leave_at_once;
    command.context = &taken;
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == -1);
    IS(error.code, "canceled");
    CHECK(taken > 0);
    free(big);

    command = COMMAND("sh", "-c", "echo $A$B; pwd");
    command.env = (const char *const[]){ "A=1", "B=2=3", NULL };
    command.cwd = "/tmp";
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    IS(result->stdout_data, "12=3\n/tmp\n");
    holt_free(result);

    command = COMMAND("sleep", "1000");
    command.timeout_ms = 100;
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->end->outcome == HOLT_TIMED_OUT && result->end->exit_code == 124);
    holt_free(result);
    command = COMMAND("no-such-command");
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->end->outcome == HOLT_NOT_STARTED && result->end->exit_code == 127);
    holt_free(result);
    command = COMMAND("sleep", "1000");
    CHECK(holt_exec(holt, sandbox, &command, holt_after(300), &result, &error) == -1);
    IS(error.code, "deadline_exceeded");
    CHECK(holt_exec(holt, "nobody", &command, soon(), &result, &error) == -1);
    IS(error.cause, "SessionNotFound");

    command = COMMAND("sh", "-c", "echo thrown away");
    CHECK(holt_run(holt, NULL, &command, soon(), &result, &error) == 0);
    IS(result->stdout_data, "thrown away\n");
    holt_free(result);
}

/* Reads output until it has word in it. */
static void read_until(struct holt_process *process, const char *word)
{
    const struct holt_process_event *event;
    char text[4096] = "";

    while (!strstr(text, word)) {
        CHECK(holt_process_next(process, &event, &error) == 1);
        CHECK(event->kind != HOLT_PROCESS_ENDED);
        if (event->kind == HOLT_PROCESS_STDOUT && strlen(text) + event->len < sizeof(text))
            (void)strncat(text, event->data, event->len);
    }
}

static void expect_end(struct holt_process *process, enum holt_outcome outcome, int code)
{
    const struct holt_process_event *event = NULL;
    int r;

    while ((r = holt_process_next(process, &event, &error)) == 1 &&
           event->kind != HOLT_PROCESS_ENDED)
        ;
    CHECK(r == 1 && event->end->outcome == outcome && event->end->exit_code == code);
    CHECK(holt_process_next(process, &event, &error) == 0);
    holt_process_close(process);
}

static void use_processes(const char *sandbox)
{
    static const char wait_for_size[] =
        "until stty size | grep '^30 7[0]'; do sleep 0.05; done; exit 3\n";
    struct holt_attach_options attach = HOLT_INIT(holt_attach_options);
    struct holt_command command = COMMAND("sh");
    struct holt_process_info *info, *joined;
    struct holt_process_list *list;
    struct holt_process *process, *viewer;
    struct holt_end *end;

    command.rows = 20;
    command.columns = 50;
    command.has_stdin = true;
    CHECK(holt_process_open(holt, sandbox, &command, soon(), &process, &error) == 0);
    CHECK(holt_process_send(process, "x", 1, false, soon(), &error) == -1);
    IS(error.code, "failed_precondition");
    read_until(process, "#");
    CHECK(holt_process_send(process, "stty size\n", 10, false, soon(), &error) == 0);
    read_until(process, "20 50");
    attach.sandbox = sandbox;
    attach.process_id = holt_process_id(process);
    attach.follows = true;
    attach.rows = 10;
    attach.columns = 60;
    CHECK(holt_process_attach(holt, &attach, soon(), &viewer, &error) == 0);
    read_until(viewer, "20 50");
    CHECK(holt_process_send(process, "stty size\n", 10, false, soon(), &error) == 0);
    read_until(process, "10 50");
    CHECK(holt_process_resize(viewer, 12, 40, soon(), &error) == 0);
    CHECK(holt_process_send(process, "stty size\n", 10, false, soon(), &error) == 0);
    read_until(process, "12 40");
    holt_process_close(viewer);
    attach = (struct holt_attach_options)HOLT_INIT(holt_attach_options);
    CHECK(holt_process_resize(process, 30, 70, soon(), &error) == 0);
    /* The viewer's size counts until the daemon has noticed that it is gone. What the terminal
     * echoes must not look like the answer. */
    CHECK(holt_process_send(process, wait_for_size, strlen(wait_for_size), false, soon(), &error) ==
          0);
    read_until(process, "30 70");
    expect_end(process, HOLT_EXITED, 3);

    command = COMMAND("id", "-u");
    command.user = "1";
    CHECK(holt_process_run(holt, NULL, &command, soon(), &process, &error) == 0);
    read_until(process, "1\n");
    expect_end(process, HOLT_EXITED, 0);

    command = COMMAND("sh", "-c", "echo begun; exec sleep 1000");
    CHECK(holt_process_open(holt, sandbox, &command, soon(), &process, &error) == 0);
    read_until(process, "begun");
    CHECK(*holt_process_id(process) && !holt_process_is_joined(process));
    IS(holt_process_sandbox_id(process), sandbox);
    CHECK(holt_process_kill(process, SIGTERM, soon(), &error) == 0);
    expect_end(process, HOLT_KILLED, 128 + SIGTERM);

    command = COMMAND("sh", "-c", "echo detached; exec sleep 1000");
    command.tag = "mine";
    command.idempotency_key = "p";
    CHECK(holt_process_start(holt, sandbox, &command, soon(), &info, &error) == 0);
    CHECK(info->is_running && !info->is_joined && !info->end);
    IS(info->args[0], "sh");
    CHECK(holt_process_start(holt, sandbox, &command, soon(), &joined, &error) == 0);
    CHECK(joined->is_joined);
    IS(joined->id, info->id);
    holt_free(joined);
    CHECK(holt_process_list(holt, sandbox, "mine", soon(), &list, &error) == 0);
    CHECK(list->count == 1);
    holt_free(list);
    attach.sandbox = sandbox;
    attach.process_id = info->id;
    attach.follows = true;
    CHECK(holt_process_attach(holt, &attach, soon(), &process, &error) == 0);
    read_until(process, "detached");
    CHECK(holt_process_wait(holt, sandbox, info->id, holt_after(100), &end, &error) == -1);
    IS(error.code, "deadline_exceeded");
    CHECK(holt_process_wait_for(holt, sandbox, info->id, 50, soon(), &end, &error) == 0 && !end);
    CHECK(holt_process_signal_tree(holt, sandbox, info->id, SIGKILL, soon(), &error) == 0);
    CHECK(holt_process_wait(holt, sandbox, info->id, soon(), &end, &error) == 0);
    CHECK(end->outcome == HOLT_KILLED);
    IS(end->killed_by, "user");
    holt_free(end);
    CHECK(holt_process_wait_for(holt, sandbox, info->id, 50, soon(), &end, &error) == 0);
    CHECK(end->outcome == HOLT_KILLED);
    expect_end(process, HOLT_KILLED, 128 + SIGKILL);
    holt_free(end);
    CHECK(holt_process_get(holt, sandbox, info->id, soon(), &joined, &error) == 0);
    CHECK(!joined->is_running && joined->end->outcome == HOLT_KILLED && joined->ended_ms > 0);
    holt_free(joined);
    CHECK(holt_process_signal(holt, sandbox, info->id, SIGTERM, soon(), &error) == -1);
    IS(error.cause, "ProcessEnded");
    holt_free(info);
}

static void use_services(const char *sandbox)
{
    struct holt_service service = HOLT_INIT(holt_service);
    struct holt_command command = COMMAND("python3", "-m", "http.server", "8000");
    struct holt_process_info *info;

    service.command = &command;
    service.port = 8000;
    service.waits = true;
    service.ready_path = "/";
    CHECK(holt_process_launch(holt, sandbox, &service, soon(), &info, &error) == 0);
    CHECK(info->is_ready && info->port == 8000 && *info->address);
    CHECK(holt_process_signal_tree(holt, sandbox, info->id, SIGKILL, soon(), &error) == 0);
    holt_free(info);
}

static void use_shells(const char *sandbox)
{
    struct holt_shell_command command = HOLT_INIT(holt_shell_command);
    struct holt_shell_list *list;
    struct holt_result *result;
    struct holt_shell *shell;

    command.shell = "work";
    command.text = "cd /tmp; x=5; false";
    CHECK(holt_shell_run(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->end->outcome == HOLT_EXITED && result->end->exit_code == 1);
    holt_free(result);
    command.text = "echo $x in $PWD; echo bad >&2";
    CHECK(holt_shell_run(holt, sandbox, &command, soon(), &result, &error) == 0);
    IS(result->stdout_data, "5 in /tmp\n");
    IS(result->stderr_data, "bad\n");
    holt_free(result);
    command.text = "sleep 1000";
    command.timeout_ms = 100;
    CHECK(holt_shell_run(holt, sandbox, &command, soon(), &result, &error) == 0);
    CHECK(result->end->outcome == HOLT_TIMED_OUT);
    holt_free(result);
    CHECK(holt_shell_open(holt, sandbox, "other", soon(), &shell, &error) == 0);
    CHECK(*shell->process_id);
    holt_free(shell);
    CHECK(holt_shell_get(holt, sandbox, "other", soon(), &shell, &error) == 0);
    IS(shell->name, "other");
    CHECK(*shell->process_id);
    holt_free(shell);
    CHECK(holt_shell_get(holt, sandbox, "none", soon(), &shell, &error) == -1);
    IS(error.code, "not_found");
    CHECK(holt_shell_list(holt, sandbox, soon(), &list, &error) == 0);
    CHECK(list->count == 2 && strcmp(list->items[0]->name, "other") == 0);
    holt_free(list);
    CHECK(holt_shell_remove(holt, sandbox, "other", soon(), &error) == 0);
}

static int count_data(void *context, const char *data, size_t len)
{
    (void)data;
    *(size_t *)context += len;
    return 0;
}

static int leave_at_a_file(void *context, const char *type, const char *path)
{
    const char *sandbox = context;
    struct holt_write_options options = HOLT_INIT(holt_write_options);

    options.path = "/workspace/watched/new";
    if (!*type)
        CHECK(holt_file_write(holt, sandbox, &options, soon(), NULL, &error) == 0);
    return *type && strcmp(path, "new") == 0;
}

static void use_files(const char *sandbox)
{
    static const char odd[] = "dir/odd \xff name";
    struct holt_write_options writing = HOLT_INIT(holt_write_options);
    struct holt_read_options reading = HOLT_INIT(holt_read_options);
    struct holt_watch_options watching = HOLT_INIT(holt_watch_options);
    char *big = calloc(1, BIG);
    struct holt_content *content;
    struct holt_file_list *list;
    struct holt_file *file;
    size_t count = 0;

    memset(big, 'b', BIG);
    writing.path = odd;
    writing.data = big;
    writing.len = BIG;
    CHECK(holt_file_write(holt, sandbox, &writing, soon(), NULL, &error) == -1);
    IS(error.code, "not_found");
    writing.makes_parents = true;
    writing.is_atomic = true;
    writing.has_mode = true;
    writing.mode = 0600;
    CHECK(holt_file_write(holt, sandbox, &writing, soon(), &file, &error) == 0);
    IS(file->path, "/workspace/dir/odd \xff name");
    CHECK(file->size_bytes == BIG && file->mode == 0600 && strcmp(file->type, "file") == 0);
    holt_free(file);
    reading.path = odd;
    CHECK(holt_file_read(holt, sandbox, &reading, soon(), &content, &error) == 0);
    CHECK(content->len == BIG && memcmp(content->data, big, BIG) == 0);
    CHECK(content->file->size_bytes == BIG);
    holt_free(content);
    reading.max = 1000;
    CHECK(holt_file_read(holt, sandbox, &reading, soon(), &content, &error) == -1);
    IS(error.code, "resource_exhausted");
    reading.on_data = count_data;
    reading.context = &count;
    reading.offset = 100;
    CHECK(holt_file_read(holt, sandbox, &reading, soon(), &content, &error) == 0);
    CHECK(count == BIG - 100 && content->len == 0);
    holt_free(content);
    CHECK(holt_file_stat(holt, sandbox, odd, soon(), &file, &error) == 0);
    CHECK(file->size_bytes == BIG && file->modified_ms > 1700000000000);
    holt_free(file);
    CHECK(holt_file_list(holt, sandbox, "dir", soon(), &list, &error) == 0);
    CHECK(list->count == 1);
    holt_free(list);
    CHECK(holt_file_move(holt, sandbox, odd, "dir/even", soon(), &error) == 0);
    CHECK(holt_file_stat(holt, sandbox, odd, soon(), &file, &error) == -1);
    IS(error.cause, "FileNotFound");
    CHECK(holt_file_remove(holt, sandbox, "dir", false, soon(), &error) == -1);
    CHECK(holt_file_remove(holt, sandbox, "dir", true, soon(), &error) == 0);
    CHECK(holt_file_mkdir(holt, sandbox, "watched/deep", soon(), &error) == 0);
    watching.path = "watched";
    watching.on_change = leave_at_a_file;
    watching.context = (void *)(uintptr_t)sandbox;
    CHECK(holt_file_watch(holt, sandbox, &watching, soon(), &error) == -1);
    IS(error.code, "canceled");
    free(big);
}

struct changes {
    int count;
    bool has_patch;
};

static int count_change(void *context, const struct holt_change *change)
{
    struct changes *changes = context;

    changes->count += *change->kind && strncmp(change->path, "/workspace/d", 12) == 0;
    changes->has_patch = changes->has_patch || change->patch_len > 0;
    return 0;
}

static void use_history(const char *sandbox)
{
    struct holt_diff_options diff = HOLT_INIT(holt_diff_options);
    struct holt_command command = COMMAND("sh", "-c", "echo 1 >d1");
    struct holt_snapshot_list *list;
    struct holt_snapshot *snapshot;
    struct holt_template *template;
    struct holt_template_list *templates;
    struct changes changes = { 0 };
    struct holt_result *result;

    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    holt_free(result);
    CHECK(holt_turn(holt, sandbox, soon(), &snapshot, &error) == 0);
    IS(snapshot->name, "turn-0001");
    CHECK(snapshot->turn == 1 && strcmp(snapshot->kind, "turn") == 0);
    holt_free(snapshot);
    CHECK(holt_snapshot_create(holt, sandbox, "kept", soon(), NULL, &error) == 0);
    CHECK(holt_snapshot_create(holt, sandbox, "kept", soon(), NULL, &error) == -1);
    IS(error.cause, "SnapshotExists");
    command = COMMAND("sh", "-c", "echo 2 >d1; echo 3 >d2");
    CHECK(holt_exec(holt, sandbox, &command, soon(), &result, &error) == 0);
    holt_free(result);
    diff.has_patch = true;
    diff.on_change = count_change;
    diff.context = &changes;
    CHECK(holt_diff(holt, sandbox, &diff, soon(), &error) == 0);
    CHECK(changes.count == 2 && changes.has_patch);
    CHECK(holt_rollback(holt, sandbox, "turn-0001", false, soon(), &error) == 0);
    CHECK(holt_snapshot_update(holt, sandbox, "kept", "a note", soon(), &error) == 0);
    CHECK(holt_snapshot_list(holt, sandbox, soon(), &list, &error) == 0);
    CHECK(list->count == 2 && strcmp(list->base, "turn-0001") == 0);
    CHECK(strcmp(list->items[0]->note, "") == 0 && strcmp(list->items[1]->note, "a note") == 0);
    holt_free(list);
    CHECK(holt_snapshot_remove(holt, sandbox, "kept", soon(), &error) == 0);
    CHECK(holt_rollback(holt, sandbox, "kept", false, soon(), &error) == -1);
    IS(error.cause, "SnapshotNotFound");
    CHECK(holt_template_commit(holt, sandbox, "committed", soon(), &template, &error) == 0);
    IS(template->name, "committed");
    holt_free(template);
    CHECK(holt_template_list(holt, soon(), &templates, &error) == 0);
    CHECK(templates->count >= 2);
    IS(templates->items[0]->owner, "");
    holt_free(templates);
    CHECK(holt_template_list_all(holt, soon(), &templates, &error) == 0);
    CHECK(templates->count >= 2);
    holt_free(templates);
    CHECK(holt_template_find(holt, "committed", soon(), &template, &error) == 0);
    CHECK(strcmp(template->name, "committed") == 0 && template->command_count == 0);
    holt_free(template);
    CHECK(holt_template_remove(holt, "committed", soon(), &error) == 0);
    CHECK(holt_template_find(holt, "committed", soon(), &template, &error) == -1);
    IS(error.cause, "TemplateNotFound");
}

static int leave_at_the_last(void *context, const struct holt_event *event)
{
    int *count = context;

    if (event->lost > 0) /* from a life of the daemon before this one */
        return 0;
    CHECK(event->seq > 0 && event->time_ms > 0 && event->fields[0] == '{');
    CHECK(strncmp(holt_result_json(event), "{\"event\":{", 10) == 0);
    return ++*count == 3;
}

static void use_events(void)
{
    struct holt_event_options options = HOLT_INIT(holt_event_options);
    int count = 0;

    options.has_since = true;
    options.types = (const char *const[]){ "sandbox.*", NULL };
    options.on_event = leave_at_the_last;
    options.context = &count;
    CHECK(holt_event_watch(holt, &options, soon(), &error) == -1);
    IS(error.code, "canceled");
    CHECK(count == 3);
    options.ends = true;
    count = 100;
    CHECK(holt_event_watch(holt, &options, soon(), &error) == 0);
    CHECK(count > 103);
    options.has_since = false;
    options.since_ms = 32503680000000; /* in the year 3000 */
    count = 100;
    CHECK(holt_event_watch(holt, &options, soon(), &error) == 0);
    CHECK(count == 100);
}

static void use_tokens(void)
{
    struct holt_token_options options = HOLT_INIT(holt_token_options);
    struct holt_token_list *list;
    struct holt_token *token;

    options.label = "for a test";
    options.is_read_only = true;
    options.ttl_ms = 1000ULL * 3600;
    CHECK(holt_token_create(holt, &options, soon(), &token, &error) == 0);
    CHECK(strncmp(token->secret, "holt_", 5) == 0 && token->is_read_only);
    CHECK(token->expires_ms > token->created_ms);
    CHECK(holt_token_list(holt, soon(), &list, &error) == 0);
    CHECK(list->count >= 1 && !*list->items[0]->secret);
    holt_free(list);
    CHECK(holt_token_remove(holt, token->id, soon(), &error) == 0);
    CHECK(holt_token_remove(holt, token->id, soon(), &error) == -1);
    IS(error.code, "not_found");
    holt_free(token);
}

static void use_volumes(void)
{
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_command write = COMMAND("sh", "-c", "printf seen >/srv/f");
    struct holt_command command = COMMAND("cat", "/mnt/v/f");
    struct holt_sandbox *writer, *reader;
    struct holt_volume_list *list;
    struct holt_volume *volume;
    struct holt_result *result;
    char mount[128];

    CHECK(holt_volume_create(holt, "shared", soon(), &volume, &error) == 0);
    IS(volume->name, "shared");
    CHECK(holt_volume_create(holt, "shared", soon(), NULL, &error) == -1);
    IS(error.code, "already_exists");
    CHECK(holt_volume_list(holt, soon(), &list, &error) == 0);
    CHECK(list->count == 1 && strcmp(list->items[0]->id, volume->id) == 0);
    holt_free(list);
    options.volumes = (const char *const[]){ "shared:/srv", NULL };
    CHECK(holt_sandbox_create(holt, &options, soon(), &writer, &error) == 0);
    CHECK(writer->mount_count == 1);
    IS(writer->mounts[0].volume, volume->id);
    IS(writer->mounts[0].path, "/srv");
    CHECK(!writer->mounts_read_only[0]);
    CHECK(holt_exec(holt, writer->id, &write, soon(), &result, &error) == 0);
    holt_free(result);
    (void)snprintf(mount, sizeof(mount), "%s:/mnt/v:ro", volume->id);
    options.volumes = (const char *const[]){ mount, "shared:/mnt/odd:ro:rw", NULL };
    CHECK(holt_sandbox_create(holt, &options, soon(), &reader, &error) == 0);
    CHECK(reader->mount_count == 2);
    IS(reader->mounts[0].path, "/mnt/odd:ro");
    CHECK(!reader->mounts_read_only[0] && reader->mounts_read_only[1]);
    CHECK(holt_exec(holt, reader->id, &command, soon(), &result, &error) == 0);
    IS(result->stdout_data, "seen");
    holt_free(result);
    CHECK(holt_volume_remove(holt, "shared", soon(), &error) == -1);
    IS(error.code, "failed_precondition");
    CHECK(holt_sandbox_destroy(holt, reader->id, soon(), &error) == 0);
    CHECK(holt_sandbox_destroy(holt, writer->id, soon(), &error) == 0);
    for (const char *const *wrong =
             (const char *const[]){ "shared", "shared:srv", ":/srv", "none:/srv", NULL };
         *wrong; wrong++) {
        options.volumes = (const char *const[]){ *wrong, NULL };
        CHECK(holt_sandbox_create(holt, &options, soon(), NULL, &error) == -1);
        CHECK(strcmp(error.code, "invalid_argument") == 0 || strcmp(error.code, "not_found") == 0);
    }
    CHECK(holt_volume_remove(holt, "shared", soon(), &error) == 0);
    CHECK(holt_volume_remove(holt, volume->id, soon(), &error) == -1);
    IS(error.code, "not_found");
    holt_free(volume);
    holt_free(reader);
    holt_free(writer);
}

#include "libholt_use_permission.h"

static void use_codebases(void)
{
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_command write = COMMAND("sh", "-c", "printf new >/code/f");
    struct holt_codebase_version *version;
    struct holt_codebase_applying *applying;
    struct holt_codebase_merging *merging;
    struct holt_codebase_source from = { .side = HOLT_CODEBASE_OURS };
    struct holt_codebase_target target = { .version = NULL };
    const uint32_t oldest = 0;
    char dir[] = "/tmp/holt-use.XXXXXX", file[64];
    struct holt_codebase_list *list;
    struct holt_codebase *codebase;
    struct holt_codebase_log *log;
    struct holt_sandbox *sandbox;
    struct holt_result *result;

    CHECK(holt_volume_create(holt, "sources", soon(), NULL, &error) == 0);
    CHECK(holt_codebase_add(holt, "app", "sources", soon(), &codebase, &error) == 0);
    IS(codebase->source, "sources");
    CHECK(holt_codebase_list(holt, soon(), &list, &error) == 0);
    CHECK(list->count == 1 && list->items[0]->version == 0);
    holt_free(list);
    options.codebase = "app:/code";
    CHECK(holt_sandbox_create(holt, &options, soon(), &sandbox, &error) == 0);
    IS(sandbox->codebase, codebase->id);
    IS(sandbox->codebase_path, "/code");
    CHECK(holt_exec(holt, sandbox->id, &write, soon(), &result, &error) == 0);
    holt_free(result);
    CHECK(holt_codebase_commit(holt, sandbox->id, "first", soon(), &version, &error) == 0);
    CHECK(version->version == 1 && version->files == 1);
    holt_free(version);
    CHECK(holt_codebase_commit(holt, sandbox->id, NULL, soon(), NULL, &error) == -1);
    IS(error.code, "invalid_argument");
    CHECK(holt_codebase_log(holt, "app", soon(), &log, &error) == 0);
    CHECK(log->count == 2);
    IS(log->items[0]->message, "first");
    IS(log->items[0]->sandbox, sandbox->id);
    holt_free(log);
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(file, sizeof(file), "%s/f", dir);
    target.directory = dir;
    CHECK(holt_codebase_apply(holt, "app", &target, soon(), &applying, &error) == 0);
    CHECK(applying->version == 1 && applying->files == 1 && applying->conflict_count == 0);
    CHECK(truncate(file, 0) == 0);
    holt_free(applying);
    target.version = &oldest;
    CHECK(holt_codebase_apply(holt, "app", &target, soon(), &applying, &error) == 0);
    CHECK(applying->conflict_count == 1 && applying->count == 1);
    IS(applying->conflicts[0]->path, "f");
    holt_free(applying);
    CHECK(unlink(file) == 0 && rmdir(dir) == 0);
    CHECK(holt_codebase_rebase(holt, sandbox->id, HOLT_CODEBASE_NEITHER, soon(), &merging,
                               &error) == 0);
    CHECK(merging->base == 1 && merging->files == 0 && merging->count == 0);
    holt_free(merging);
    from.sandbox = sandbox->id;
    CHECK(holt_codebase_merge(holt, sandbox->id, &from, soon(), &merging, &error) == -1);
    IS(error.code, "invalid_argument");
    CHECK(holt_codebase_discard(holt, sandbox->id, "f", soon(), &error) == -1);
    IS(error.code, "invalid_argument");
    CHECK(holt_codebase_discard(holt, sandbox->id, NULL, soon(), &error) == 0);
    CHECK(holt_codebase_remove(holt, "app", soon(), &error) == -1);
    IS(error.code, "failed_precondition");
    CHECK(holt_sandbox_destroy(holt, sandbox->id, soon(), &error) == 0);
    CHECK(holt_codebase_remove(holt, "app", soon(), &error) == 0);
    CHECK(holt_volume_remove(holt, "sources", soon(), &error) == 0);
    holt_free(sandbox);
    holt_free(codebase);
}

static int hear(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    char *heard = context;

    (void)strncat(heard, kind == HOLT_STDERR ? "!" : "", 1);
    (void)strncat(heard, data, len);
    return strstr(heard, "stop") ? 1 : 0;
}

static void use_tool_results(const char *sandbox)
{
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_tool_part part = HOLT_INIT(holt_tool_part);
    struct holt_tool_result *result, *again;
    struct holt_tool_output *output;

    call.tool = "bash";
    call.params = "{\"cmd\":\"seq 10000; touch tool-made; exit 3\"}";
    call.id = "libholt";
    call.max_output_tokens = 100;
    call.wants_changed = true;
    call.snapshot = HOLT_TOOL_SNAPSHOT_YES;
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == 0);
    CHECK(!result->is_error && result->has_exit_code && result->exit_code == 3);
    CHECK(result->tier == 2 && result->block_count == 1 && !*result->blocks[0]->mime_type);
    CHECK(strncmp(result->content, "1\n2\n", 4) == 0 &&
          strlen(result->content) == result->content_len);
    CHECK(result->is_truncated && result->shown_bytes < 1000 && result->total_bytes > 48000);
    CHECK(result->changed_count == 1);
    IS(result->changed[0]->kind, "A");
    IS(result->changed[0]->path, "/workspace/tool-made");
    CHECK(*result->snapshot_id && !*result->snapshot_error && !result->is_repeated);
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &again, &error) == 0);
    CHECK(again->is_repeated);
    IS(again->content, result->content);
    holt_free(again);
    part.handle = result->handle;
    part.offset = 2;
    part.limit = 4;
    CHECK(holt_tool_read_output(holt, sandbox, &part, soon(), &output, &error) == 0);
    IS(output->text, "2\n3\n");
    CHECK(output->len == 4 && output->total_bytes == result->total_bytes);
    holt_free(output);
    part.handle = "none";
    CHECK(holt_tool_read_output(holt, sandbox, &part, soon(), &output, &error) == -1);
    IS(error.code, "not_found");
    holt_free(result);
}

static void use_tool_progress(const char *sandbox)
{
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_tool_result *result;
    char heard[4096] = "";

    call.tool = "bash";
    call.params = "{\"cmd\":\"echo out; echo err >&2\"}";
    call.on_progress = hear;
    call.context = heard;
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == 0);
    CHECK(strstr(heard, "out") && strstr(heard, "!err") && strstr(result->content, "out"));
    holt_free(result);
    call.params = "{\"cmd\":\"echo stop; sleep 1000\"}";
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == -1);
    IS(error.code, "canceled");
    call.on_progress = NULL;
    call.params = "{\"cmd\":\"sleep 1000\"}";
    CHECK(holt_tool_execute(holt, sandbox, &call, holt_after(300), &result, &error) == -1);
    IS(error.code, "deadline_exceeded");
    call.params = "[]";
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == -1);
    IS(error.code, "invalid_argument");
}

static void use_tools(const char *sandbox)
{
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_tool_result *result;
    struct holt_tool_list *list;
    size_t looks = 0;

    CHECK(holt_tool_list(holt, soon(), &list, &error) == 0);
    CHECK(list->count >= 27);
    IS(list->items[0]->name, "read_file");
    CHECK(strstr(list->items[0]->input_schema, "\"required\":[\"path\"]"));
    for (size_t i = 0; i < list->count; i++)
        looks += list->items[i]->is_read_only;
    CHECK(looks > 5 && looks < list->count);
    holt_free(list);
    call.tool = "read_file";
    call.params = "{\"path\":\"nothing\"}";
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == 0);
    CHECK(result->is_error && strstr(result->content, "nothing") && result->tier == 1);
    holt_free(result);
    call.tool = "run_code";
    call.params = "{\"code\":\"1 + 1\"}";
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == 0);
    CHECK(result->is_error && strstr(result->content, "has no code interpreter"));
    holt_free(result);
    call.tool = "red_file";
    CHECK(holt_tool_execute(holt, sandbox, &call, soon(), &result, &error) == -1);
    IS(error.code, "not_found");
    use_tool_results(sandbox);
    use_tool_progress(sandbox);
}

/* The methods of an environment, in the order of a life. */
static void use_env(void)
{
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_command command = COMMAND("true");
    struct holt_tool_result *answer;
    struct holt_env *env, *second;
    struct holt_capabilities *can;
    struct holt_sandbox *made;
    struct holt_result *result;
    enum holt_state state;

    options.needs = HOLT_NEEDS_SNAPSHOTS | HOLT_NEEDS_PAUSE | HOLT_NEEDS_LIMITS;
    CHECK(holt_env_create(holt, &options, soon(), &env, &error) == 0);
    CHECK(holt_env_capabilities(env)->snapshots);
    CHECK(holt_env_attach(holt, holt_env_id(env), 0, soon(), &second, &error) == 0);
    IS(holt_env_id(second), holt_env_id(env));
    CHECK(holt_env_attach(holt, "nobody", 0, soon(), &second, &error) == -1);
    IS(error.cause, "SessionNotFound");
    CHECK(holt_env_snapshot(env, "a", soon(), NULL, &error) == 0);
    CHECK(holt_env_turn(env, soon(), NULL, &error) == 0);
    CHECK(holt_env_rollback(env, "a", soon(), &error) == 0);
    CHECK(holt_env_pause(env, soon(), &error) == 0);
    CHECK(holt_env_state(env, soon(), &state, &error) == 0 && state == HOLT_STATE_PAUSED);
    CHECK(holt_env_exec(env, &command, soon(), &result, &error) == -1);
    IS(error.cause, "SessionPaused");
    CHECK(holt_env_resume(env, soon(), &error) == 0);
    CHECK(holt_env_exec(env, &command, soon(), &result, &error) == 0);
    holt_free(result);
    call.tool = "list_dir";
    CHECK(holt_env_execute_tool(env, &call, soon(), &answer, &error) == 0 && !answer->is_error);
    holt_free(answer);
    CHECK(holt_env_destroy(env, soon(), &error) == 0 && holt_env_destroy(env, soon(), &error) == 0);
    CHECK(holt_env_state(env, soon(), &state, &error) == 0 && state == HOLT_STATE_DESTROYED);
    CHECK(holt_env_exec(env, &command, soon(), &result, &error) == -1);
    IS(error.code, "failed_precondition");
    CHECK(holt_env_execute_tool(env, &call, soon(), &answer, &error) == -1);
    IS(error.code, "failed_precondition");
    holt_env_free(env);
    CHECK(holt_env_state(second, soon(), &state, &error) == 0 && state == HOLT_STATE_DESTROYED);
    CHECK(holt_env_destroy(second, soon(), &error) == 0);
    holt_env_free(second);
    options.needs = HOLT_NEEDS_QUOTA;
    options.name = "never-made";
    CHECK(holt_capabilities(holt, soon(), &can, &error) == 0);
    if (!can->quota) {
        CHECK(holt_env_create(holt, &options, soon(), &env, &error) == -1);
        IS(error.code, "unimplemented");
        CHECK(holt_sandbox_get(holt, "never-made", soon(), &made, &error) == -1);
        IS(error.cause, "SessionNotFound");
    }
    CHECK(can->quota == (strcmp(can->storage, "dir") != 0));
    holt_free(can);
    options.needs = 0x80000000;
    CHECK(holt_env_create(holt, &options, soon(), &env, &error) == -1);
    IS(error.code, "invalid_argument");
}

static void *exec_often(void *sandbox)
{
    struct holt_command command = COMMAND("echo", "hi");

    for (int i = 0; i < 5; i++) {
        struct holt_error own;
        struct holt_result *result;

        if (holt_exec(holt, sandbox, &command, soon(), &result, &own) < 0 ||
            strcmp(result->stdout_data, "hi\n") != 0)
            return sandbox; /* anything but NULL */
        holt_free(result);
    }
    return NULL;
}

static void use_threads(const char *sandbox)
{
    pthread_t threads[8];
    void *failed;

    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, exec_often, (void *)(uintptr_t)sandbox) == 0);
    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], &failed) == 0 && !failed);
}

int main(void)
{
    struct holt_sandbox *sandbox;

    CHECK(holt_open(NULL, soon(), &holt, &error) == 0);
    use_host();
    use_sandboxes();
    CHECK(holt_sandbox_create(holt, NULL, soon(), &sandbox, &error) == 0);
    use_commands(sandbox->id);
    use_processes(sandbox->id);
    use_services(sandbox->id);
    use_shells(sandbox->id);
    use_files(sandbox->id);
    use_tools(sandbox->id);
    use_reports(sandbox->id);
    use_ports(sandbox->id);
    use_threads(sandbox->id);
    CHECK(holt_sandbox_destroy(holt, sandbox->id, soon(), &error) == 0);
    holt_free(sandbox);
    CHECK(holt_sandbox_create(holt, NULL, soon(), &sandbox, &error) == 0);
    use_history(sandbox->id);
    CHECK(holt_sandbox_destroy(holt, sandbox->id, soon(), &error) == 0);
    holt_free(sandbox);
    use_events();
    use_tokens();
    use_volumes();
    use_codebases();
    use_permissions();
    use_env();
    holt_close(holt);
    return 0;
}
