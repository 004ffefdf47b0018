// SPDX-License-Identifier: Apache-2.0
/* The commands for sandboxes and turns against a daemon that is played by this test. */
#include "base/err.h"
#include "base/json.h"
#include "unit/cli/cli.h"

enum { HEARD_SIZE = 64 * 1024 };

/* Every request: "METHOD BODY\n". */
static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER;
static char heard[HEARD_SIZE];
static size_t heard_len;

static void hear(const char *method, const char *body, size_t len)
{
    CHECK(pthread_mutex_lock(&heard_lock) == 0);
    heard_len += (size_t)snprintf(heard + heard_len, sizeof(heard) - heard_len, "%s %.*s\n", method,
                                  (int)len, body);
    CHECK(heard_len < sizeof(heard));
    CHECK(pthread_mutex_unlock(&heard_lock) == 0);
}

static void check_heard(const char *wanted)
{
    CHECK(pthread_mutex_lock(&heard_lock) == 0);
    CHECK_TEXT(heard, wanted);
    heard[0] = '\0';
    heard_len = 0;
    CHECK(pthread_mutex_unlock(&heard_lock) == 0);
}

#define CREATED "\"createdAt\":\"1970-01-02T00:00:00.123Z\""

static void serve_diff(int fd, const char *request)
{
    reply_stream(fd);
    if (strstr(request, "\"from\":\"gone\"")) {
        stream_end(fd, ERR_NOT_FOUND, "no snapshot 'gone'");
        return;
    }
    event(fd,
          "{\"kind\":\"added\",\"path\":\"/w/a\",\"type\":\"file\",\"size\":\"2\",\"addedLines\":"
          "\"1\",\"patch\":\"LS0tIC9kZXYvbnVsbAorKysgYi93L2EKQEAgLTAsMCArMSBA\"}");
    event(fd, "{\"patch\":\"QAorMQo=\"}");
    event(fd,
          "{\"kind\":\"modified\",\"path\":\"/w/b\",\"type\":\"file\",\"size\":\"9\",\"oldSize\":"
          "\"4\",\"binary\":true}");
    event(fd, "{\"kind\":\"deleted\",\"path\":\"/w/d?\",\"rawPath\":\"L3cvZP8=\",\"type\":\"file\","
              "\"deletedLines\":\"3\"}");
    event(fd,
          "{\"kind\":\"renamed\",\"path\":\"/w/new\\n\",\"oldPath\":\"/w/old\",\"type\":\"file\","
          "\"size\":\"7\",\"oldSize\":\"7\"}");
    stream_end(fd, ERR_NONE, NULL);
}

static void serve_audit(int fd, const char *request)
{
    reply_stream(fd);
    if (!strstr(request, "\"verify\":true"))
        event(fd,
              "{\"line\":\"{\\\"seq\\\":1,\\\"time\\\":\\\"T\\\",\\\"event\\\":\\\"create\\\","
              "\\\"sandbox\\\":\\\"s1\\\",\\\"n\\\":[1],\\\"t\\\":\\\"a\\\\u001bb\\\",\\\"hash\\\":"
              "\\\"h\\\"}\"}");
    event(fd, strstr(request, "broken")
                  ? "{\"verdict\":{\"inOrder\":false,\"lines\":\"1\",\"problem\":\"line 2\"}}"
                  : "{\"verdict\":{\"inOrder\":true,\"lines\":\"12\",\"problem\":\"\"}}");
    stream_end(fd, ERR_NONE, NULL);
}

static void serve_exec(int fd, const char *request)
{
    reply_stream(fd);
    if (strstr(request, "paused")) {
        stream_end(fd, ERR_BUSY, "sandbox 's1' is paused");
        return;
    }
    event(fd, "{\"started\":{\"sandboxId\":\"s1\",\"processId\":\"p1\"}}");
    event_output(fd, "stdout", "hi\n", 3);
    event(fd, "{\"ended\":{\"outcome\":\"exited\",\"exitCode\":7,\"reason\":\"\"}}");
    stream_end(fd, ERR_NONE, NULL);
}

static void serve_stream(int fd, const char *method, const char *body, size_t len)
{
    cleanup_free char *request = NULL;
    struct envelope envelope;

    CHECK(envelope_parse(body, len, &envelope) == (ssize_t)len);
    hear(method, envelope.payload, envelope.len);
    request = xasprintf("%.*s", (int)envelope.len, envelope.payload);
    if (strcmp(method, "SnapshotService/Diff") == 0)
        serve_diff(fd, request);
    else if (strcmp(method, "HostService/Audit") == 0)
        serve_audit(fd, request);
    else
        serve_exec(fd, request);
}

static const struct {
    const char *method, *reply;
} replies[] = {
    { "SandboxService/Create", "{\"sandbox\":{\"id\":\"sb-1\",\"name\":\"s1\"}}" },
    { "SandboxService/Get", "{\"sandbox\":{\"id\":\"sb-1\",\"spaceUsed\":\"7\"}}" },
    { "SandboxService/List",
      "{\"sandboxes\":[{\"id\":\"sb-1\",\"name\":\"s1\",\"state\":\"active\",\"template\":"
      "\"debian\","
      "\"turns\":12," CREATED "},{\"id\":\"sb-22\",\"name\":\"\",\"state\":\"failed\",\"template\":"
      "\"host\",\"turns\":0}]}" },
    { "SandboxService/Fork", "{\"sandboxes\":[{\"id\":\"sb-2\"},{\"id\":\"sb-3\"}]}" },
    { "SnapshotService/TurnComplete", "{\"snapshot\":{\"name\":\"turn-0001\"}}" },
    { "SnapshotService/Create", "{\"snapshot\":{\"name\":\"before\"}}" },
    { "SnapshotService/List",
      "{\"snapshots\":[{\"name\":\"turn-0001\",\"kind\":\"turn\",\"turn\":1,\"parent\":\"\","
      "\"spaceUsed\":\"4096\"},{\"name\":\"before\",\"kind\":\"named\",\"turn\":0,\"parent\":"
      "\"turn-0001\",\"spaceUsed\":\"1572864\"}],\"base\":\"turn-0001\"}" },
    { "TemplateService/Commit", "{\"template\":{\"name\":\"new\"}}" },
};

static void serve_call(int fd, const char *method, const char *body, size_t len)
{
    if (*body != '{') {
        serve_stream(fd, method, body, len);
        return;
    }
    hear(method, body, len);
    if (memmem(body, len, "\"gone\"", 6)) {
        reply(fd, 404,
              "{\"code\":\"not_found\",\"message\":\"no sandbox 'gone'\",\"cause\":"
              "\"SessionNotFound\",\"remedy\":\"look around\",\"retryable\":false}");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        if (strcmp(replies[i].method, method) == 0) {
            reply(fd, 200, replies[i].reply);
            return;
        }
    }
    reply(fd, 200, "{}");
}

static void create_asks_for_what_was_said(void)
{
    HOLT("create", "--template", "debian", "--name", "s1", "--label", "team=red", "--quota", "2G",
         "-q", "--ttl", "1h30m:pause", "--idle-timeout=10m", "--max-snapshots", "3");
    CHECK_SEEN(0, "sb-1\n", "");
    check_heard(
        "SandboxService/Create "
        "{\"name\":\"s1\",\"template\":\"debian\",\"limits\":{},\"quotaBytes\":"
        "\"2147483648\",\"labels\":{\"team\":\"red\"},\"maxSnapshots\":3,\"ttlMs\":\"5400000\","
        "\"expireAction\":\"pause\",\"idleTimeoutMs\":\"600000\",\"idleAction\":\"kill\"}\n");
    HOLT("create", "-m1K", "--cpus=1.5", "--pids=9", "--runtime", "bwrap");
    CHECK_SEEN(0, "created sandbox sb-1 (s1)\n", "");
    check_heard("SandboxService/Create {\"runtime\":\"bwrap\",\"limits\":{"
                "\"memoryBytes\":\"1024\",\"cpuMillis\":1500,\"pids\":9}}\n");
}

static void wrong_words_reach_no_daemon(void)
{
    static const struct {
        const char *words[4];
        const char *why;
    } wrong[] = {
        { { "create", "--label", "x" }, "create: --label 'x' is not KEY=VALUE" },
        { { "create", "--label", "=x" }, "create: --label '=x' is not KEY=VALUE" },
        { { "create", "--quota", "0" }, "create: --quota '0' is not a size like 2G" },
        { { "create", "--ttl", "0" }, "create: --ttl '0' is not a time like 1h or 1h:pause" },
        { { "create", "--ttl", "1h:" }, "create: --ttl '1h:' is not a time like 1h or 1h:pause" },
        { { "create", "--ttl", "1h:x" }, "create: --ttl '1h:x' is not a time like 1h or 1h:pause" },
        { { "create", "--max-snapshots", "0" },
          "create: --max-snapshots '0' is not a number like 20" },
        { { "create", "x" }, "create: takes no arguments" },
        { { "exec" }, "exec: needs an ID and a COMMAND" },
        { { "exec", "s1", "--" }, "exec: needs an ID and a COMMAND" },
        { { "turn" }, "turn: needs an ID" },
        { { "snapshot", "s1" }, "snapshot: needs an ID and a NAME" },
        { { "snapshots" }, "snapshots: needs an ID" },
        { { "snapshots", "rm", "s1" }, "snapshots rm: needs an ID and a NAME" },
        { { "rollback", "s1" }, "rollback: needs an ID and a SNAPSHOT" },
        { { "fork", "s1", "s2" }, "fork: needs an ID" },
        { { "fork", "s1", "-n0" }, "fork: --count '0' is not a number like 8" },
        { { "diff" }, "diff: needs an ID and at most FROM and TO" },
        { { "diff", "s1", "--stat", "--patch" }, "diff: shows either --stat or --patch" },
        { { "rm" }, "rm: needs an ID" },
        { { "template", "rm" }, "template rm: needs a NAME" },
        { { "inspect" }, "inspect: needs an ID" },
        { { "ls", "-o", "xml" }, "ls: --output is 'table' or 'json', not 'xml'" },
        { { "audit", "a", "b" }, "audit: needs one ID or none" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        const char *const words[] = { wrong[i].words[0], wrong[i].words[1], wrong[i].words[2],
                                      wrong[i].words[3], NULL };

        holt_words(words);
        CHECK(seen.status == (strcmp(words[0], "exec") == 0 ? 125 : 2) && seen.out_len == 0,
              "(%zu)", i);
        CHECK(strstr(seen.err, wrong[i].why) == seen.err + strlen("holt: "), "(%s)", seen.err);
    }
    check_heard("");
}

static void exec_is_as_run_is(void)
{
    static const char request[] =
        "ProcessService/Exec {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"sh\",\"-c\",\"x\"],"
        "\"env\":{\"A\":\"b\"},\"cwd\":\"/w\",\"timeoutMs\":\"2000\"}}\n";

    HOLT("exec", "s1", "--timeout", "2s", "-eA=b", "--cwd", "/w", "--", "sh", "-c", "x");
    CHECK_SEEN(7, "hi\n", "");
    check_heard(request);
    HOLT("exec", "--timeout=2s", "-e", "A=b", "-w/w", "s1", "sh", "-c", "x");
    CHECK_SEEN(7, "hi\n", "");
    check_heard(request);
    HOLT("exec", "--", "s1", "-t");
    check_heard("ProcessService/Exec {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"-t\"]}}\n");
    HOLT("exec", "s1", "paused");
    CHECK_SEEN(125, "", "holt: sandbox 's1' is paused\n");
    check_heard("ProcessService/Exec {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"paused\"]}}\n");
}

static void verbs_do_all_and_report_each_failure(void)
{
    HOLT("pause", "s1", "gone", "s2");
    CHECK_SEEN(3, "", "holt: no sandbox 'gone'\n      look around\n");
    check_heard("SandboxService/Pause {\"sandboxId\":\"s1\"}\n"
                "SandboxService/Pause {\"sandboxId\":\"gone\"}\n"
                "SandboxService/Pause {\"sandboxId\":\"s2\"}\n");
    HOLT("resume", "s1");
    HOLT("stop", "s1");
    HOLT("start", "s1");
    HOLT("rm", "s1");
    CHECK_SEEN(0, "", "");
    check_heard("SandboxService/Resume {\"sandboxId\":\"s1\"}\n"
                "SandboxService/Stop {\"sandboxId\":\"s1\"}\n"
                "SandboxService/Start {\"sandboxId\":\"s1\"}\n"
                "SandboxService/Destroy {\"sandboxId\":\"s1\"}\n");
    HOLT("rm", "gone");
    CHECK_SEEN(3, "", "holt: no sandbox 'gone'\n      look around\n");
    HOLT("rm", "gone", "-f");
    CHECK_SEEN(0, "", "");
    HOLT("rm", "\xff");
    CHECK_SEEN(2, "", "holt: argument 'sandboxId' is not UTF-8\n");
    check_heard("SandboxService/Destroy {\"sandboxId\":\"gone\"}\n"
                "SandboxService/Destroy {\"sandboxId\":\"gone\"}\n");
}

static void sandboxes_are_listed(void)
{
    HOLT("ls");
    CHECK(seen.status == 0 && strstr(seen.out, "d ago\n"));
    *strstr(strstr(seen.out, "12  "), "  ") = '\0'; /* how long ago depends on now */
    CHECK_TEXT(seen.out, "ID     NAME  STATE   TEMPLATE  TURNS  CREATED\n"
                         "sb-1   s1    active  debian       12");
    HOLT("ls", "-q", "--label", "a=b", "-lc=d");
    CHECK_SEEN(0, "sb-1\nsb-22\n", "");
    HOLT("ls", "-ojson");
    CHECK(seen.status == 0 && seen.out[0] == '[');
    check_heard("SandboxService/List {}\n"
                "SandboxService/List {\"labels\":{\"a\":\"b\",\"c\":\"d\"}}\n"
                "SandboxService/List {}\n");
    HOLT("inspect", "s1");
    CHECK_SEEN(0, "{\"id\":\"sb-1\",\"spaceUsed\":\"7\"}\n", "");
    check_heard("SandboxService/Get {\"sandboxId\":\"s1\"}\n");
    HOLT("inspect", "s1", "gone");
    CHECK_SEEN(3, "[{\"id\":\"sb-1\",\"spaceUsed\":\"7\"}]\n",
               "holt: no sandbox 'gone'\n      look around\n");
    check_heard("SandboxService/Get {\"sandboxId\":\"s1\"}\n"
                "SandboxService/Get {\"sandboxId\":\"gone\"}\n");
}

static void turns_and_snapshots_are_named(void)
{
    HOLT("turn", "s1");
    CHECK_SEEN(0, "turn-0001\n", "");
    HOLT("snapshot", "s1", "before");
    CHECK_SEEN(0, "before\n", "");
    HOLT("snapshots", "s1");
    CHECK_SEEN(0,
               "NAME       KIND   TURN  PARENT     CREATED    SPACE\n"
               "turn-0001  turn      1  template   -        4.0 KiB  <- now\n"
               "before     named     -  turn-0001  -        1.5 MiB\n",
               "");
    HOLT("snapshots", "s1", "-o", "json");
    CHECK(seen.status == 0 && strstr(seen.out, "\"base\":\"turn-0001\""));
    HOLT("snapshots", "rm", "s1", "before", "turn-0001");
    CHECK_SEEN(0, "", "");
    check_heard("SnapshotService/TurnComplete {\"sandboxId\":\"s1\"}\n"
                "SnapshotService/Create {\"sandboxId\":\"s1\",\"name\":\"before\"}\n"
                "SnapshotService/List {\"sandboxId\":\"s1\"}\n"
                "SnapshotService/List {\"sandboxId\":\"s1\"}\n"
                "SnapshotService/Remove {\"sandboxId\":\"s1\",\"snapshot\":\"before\"}\n"
                "SnapshotService/Remove {\"sandboxId\":\"s1\",\"snapshot\":\"turn-0001\"}\n");
}

static void rollbacks_forks_and_commits_are_asked_for(void)
{
    HOLT("rollback", "s1", "turn-0001", "--prune-newer");
    CHECK_SEEN(0, "", "");
    HOLT("fork", "s1", "--count", "2", "--from", "turn-0001");
    CHECK_SEEN(0, "sb-2\nsb-3\n", "");
    HOLT("template", "commit", "s1", "new");
    CHECK_SEEN(0, "new\n", "");
    check_heard("SnapshotService/Rollback {\"sandboxId\":\"s1\",\"snapshot\":\"turn-0001\","
                "\"pruneNewer\":true}\n"
                "SandboxService/Fork {\"sandboxId\":\"s1\",\"from\":\"turn-0001\",\"count\":2}\n"
                "TemplateService/Commit {\"sandboxId\":\"s1\",\"name\":\"new\"}\n");
}

static void a_diff_is_shown_as_git_shows_it(void)
{
    HOLT("diff", "s1");
    CHECK_SEEN(0, "A /w/a\nM /w/b\nD /w/d\xff\nR /w/old -> \"/w/new\\n\"\n", "");
    HOLT("diff", "s1", "template", "--stat");
    CHECK_SEEN(0,
               " /w/a                 | 1 +\n"
               " /w/b                 | Bin 4 -> 9 bytes\n"
               " /w/d\xff                | 3 ---\n"
               " /w/old => \"/w/new\\n\" | 0\n"
               " 4 files changed, 1 insertion(+), 3 deletions(-)\n",
               "");
    HOLT("diff", "s1", "a", "b", "--json");
    CHECK(seen.status == 0 && strncmp(seen.out, "{\"kind\":\"added\",", 16) == 0);
    HOLT("diff", "s1", "gone");
    CHECK_SEEN(3, "", "holt: no snapshot 'gone'\n");
    check_heard("SnapshotService/Diff {\"sandboxId\":\"s1\"}\n"
                "SnapshotService/Diff {\"sandboxId\":\"s1\",\"from\":\"template\",\"lines\":true}\n"
                "SnapshotService/Diff {\"sandboxId\":\"s1\",\"from\":\"a\",\"to\":\"b\"}\n"
                "SnapshotService/Diff {\"sandboxId\":\"s1\",\"from\":\"gone\"}\n");
}

static void a_patch_is_for_git_and_tells_what_it_cannot(void)
{
    HOLT("diff", "s1", "--patch");
    CHECK_SEEN(0,
               "diff --git a/w/a b/w/a\nnew file mode 100644\n--- /dev/null\n+++ b/w/a\n"
               "@@ -0,0 +1 @@\n+1\n"
               "diff --git a/w/d\xff b/w/d\xff\ndeleted file mode 100644\n"
               "diff --git a/w/old \"b/w/new\\n\"\nsimilarity index 100%\nrename from w/old\n"
               "rename to \"w/new\\n\"\n",
               "holt: left out of the patch: /w/b, which is not text\n");
    check_heard("SnapshotService/Diff {\"sandboxId\":\"s1\",\"patch\":true}\n");
}

static void the_record_is_shown_and_checked(void)
{
    HOLT("audit", "s1");
    CHECK_SEEN(0, "T  create  s1  n=[1]  t=a?b\n", "");
    HOLT("audit", "-o", "json");
    CHECK_SEEN(0,
               "{\"seq\":1,\"time\":\"T\",\"event\":\"create\",\"sandbox\":\"s1\",\"n\":[1],\"t\":"
               "\"a\\u001bb\",\"hash\":\"h\"}\n",
               "");
    HOLT("audit", "--verify");
    CHECK_SEEN(0, "12 lines are in order\n", "");
    HOLT("audit", "--verify", "broken");
    CHECK_SEEN(1, "", "holt: the audit record is not in order: line 2\n");
    HOLT("audit", "broken", "-ojson");
    CHECK(seen.status == 125 && seen.out_len > 0);
    check_heard("HostService/Audit {\"sandboxId\":\"s1\"}\n"
                "HostService/Audit {}\n"
                "HostService/Audit {\"verify\":true}\n"
                "HostService/Audit {\"sandboxId\":\"broken\",\"verify\":true}\n"
                "HostService/Audit {\"sandboxId\":\"broken\"}\n");
}

static void help_has_headings_and_every_command_has_help(void)
{
    cleanup_free char *list = NULL;
    int count = 0;

    HOLT("--help");
    CHECK(seen.status == 0);
    list = xstrdup(seen.out);
    CHECK(strstr(list, "\nSandboxes:\n") && strstr(list, "\nProcesses:\n") &&
          strstr(list, "\nTurns:\n") && strstr(list, "\nTemplates:\n") &&
          strstr(list, "\nHost:\n"));
    for (char *line = list, *end; (end = strchr(line, '\n')); line = end + 1) {
        char first[32] = "", second[32] = "";

        if (strncmp(line, "  ", 2) != 0 || line[2] < 'a' || line[2] > 'z')
            continue;
        CHECK(sscanf(line, "  %31[a-z] %31[a-z] ", first, second) >= 1);
        if (line[2 + strlen(first) + 1] == ' ')
            second[0] = '\0';
        HOLT(first, *second ? second : "--help", *second ? "--help" : NULL);
        CHECK(seen.status == 0 && strncmp(seen.out, "Usage: holt ", 12) == 0, "(%s %s)", first,
              second);
        count++;
    }
    CHECK(count > 30, "(%d)", count);
    check_heard("");
}

static void all(void)
{
    find_binary();
    start_daemon();
    RUN(create_asks_for_what_was_said);
    RUN(wrong_words_reach_no_daemon);
    RUN(exec_is_as_run_is);
    RUN(verbs_do_all_and_report_each_failure);
    RUN(sandboxes_are_listed);
    RUN(turns_and_snapshots_are_named);
    RUN(rollbacks_forks_and_commits_are_asked_for);
    RUN(a_diff_is_shown_as_git_shows_it);
    RUN(a_patch_is_for_git_and_tells_what_it_cannot);
    RUN(the_record_is_shown_and_checked);
    RUN(help_has_headings_and_every_command_has_help);
    clean_up();
}

int main(void)
{
    RUN(all);
    return 0;
}
