// SPDX-License-Identifier: Apache-2.0
/* The commands for processes against a daemon that is played by this test. */
#include <signal.h>

#include "../../../src/cli/core/signal_name.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/cli/run/leave_keys.c"   // NOLINT(bugprone-suspicious-include)
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

#define ENDED(fields) "{\"ended\":{" fields ",\"reason\":\"\"}}"

/* "live" still runs, so a stream that does not follow ends without an end. */
static void serve_attach(int fd, const char *request)
{
    reply_stream(fd);
    if (strstr(request, "\"p9\"")) {
        stream_end(fd, ERR_NOT_FOUND, "no process 'p9' in sandbox 's1'");
        return;
    }
    event(fd, "{\"started\":{\"sandboxId\":\"s1\",\"processId\":\"p1\",\"stdoutOffset\":\"5\"}}");
    event(fd, "{\"offset\":\"5\",\"stdout\":\"b25lCg==\"}");
    event(fd, "{\"gap\":{\"stream\":\"stderr\",\"offset\":\"7\",\"missing\":\"12345\"}}");
    event(fd, "{\"offset\":\"12352\",\"stderr\":\"dHdvCg==\"}");
    event(fd, "{\"stdout\":\"dGhyZWUK\",\"offset\":\"9\"}");
    if (!strstr(request, "live"))
        event(fd, ENDED("\"outcome\":\"exited\",\"exitCode\":6"));
    stream_end(fd, ERR_NONE, NULL);
}

static void serve_exec(int fd)
{
    reply_stream(fd);
    event(fd, "{\"started\":{\"sandboxId\":\"s1\",\"processId\":\"p1\",\"joined\":true}}");
    event(fd, ENDED("\"outcome\":\"killed\",\"exitCode\":143,\"killedBy\":"
                    "\"user\""));
    stream_end(fd, ERR_NONE, NULL);
}

/* One of each kind; what follows "rest" is the same for all. */
static char listed[4096];

static void list_fill(void)
{
    static const struct {
        const char *id, *rest;
    } processes[] = {
        { "p1", "\"state\":\"running\",\"pid\":42,\"tag\":\"w\"" },
        { "p2", "\"ended\":{\"outcome\":\"exited\",\"exitCode\":3},\"argsTruncated\":true" },
        { "p3", "\"ended\":{\"outcome\":\"signaled\",\"signal\":11}" },
        { "p4", "\"ended\":{\"outcome\":\"killed\",\"killedBy\":\"rollback\"}" },
        { "p5", "\"ended\":{\"outcome\":\"timed_out\"}" },
    };
    size_t len = (size_t)snprintf(listed, sizeof(listed), "{\"processes\":[");

    for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
        len += (size_t)snprintf(listed + len, sizeof(listed) - len,
                                "%s{\"id\":\"%s\",\"args\":[\"sh\",\"-c\",\"a\\nb\"],"
                                "\"startedAt\":\"1970-01-01T00:00:00Z\",%s}",
                                i > 0 ? "," : "", processes[i].id, processes[i].rest);
    CHECK((size_t)snprintf(listed + len, sizeof(listed) - len, "]}") < sizeof(listed) - len);
}

static const struct {
    const char *part; /* of method or request */
    const char *reply;
} replies[] = {
    { "ProcessService/Start", "{\"process\":{\"id\":\"p7\"},\"joined\":false}" },
    { "ProcessService/List", listed },
    { "ProcessService/Get", "{\"process\":{\"id\":\"p1\",\"args\":[\"sh\"],\"stdin\":false}}" },
    { "slow", "{\"timedOut\":true}" },
    { "ProcessService/Wait", ENDED("\"outcome\":\"exited\",\"exitCode\":4") },
};

static void serve_call(int fd, const char *method, const char *body, size_t len)
{
    bool is_stream = *body != '{';
    cleanup_free char *request =
        xasprintf("%.*s", (int)(is_stream ? len - 5 : len), is_stream ? body + 5 : body);

    hear(method, request, strlen(request));
    if (strcmp(method, "ProcessService/Attach") == 0) {
        serve_attach(fd, request);
        return;
    }
    if (strcmp(method, "ProcessService/Exec") == 0) {
        serve_exec(fd);
        return;
    }
    if (strstr(request, "\"p9\"")) {
        reply(fd, 404,
              "{\"code\":\"not_found\",\"message\":\"no process 'p9'\",\"cause\":"
              "\"ProcessNotFound\"}");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        if (strstr(method, replies[i].part) || strstr(request, replies[i].part)) {
            reply(fd, 200, replies[i].reply);
            return;
        }
    }
    reply(fd, 200, "{}");
}

static void a_detached_exec_prints_the_id(void)
{
    HOLT("exec", "-d", "--tag", "t", "--key=k", "s1", "--", "sleep", "1");
    CHECK_SEEN(0, "p7\n", "");
    check_heard(
        "ProcessService/Start {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"sleep\",\"1\"],"
        "\"tag\":\"t\"},\"idempotencyKey\":\"k\"}\n");
    HOLT("exec", "s1", "-di", "cat");
    CHECK_SEEN(0, "p7\n", "");
    check_heard("ProcessService/Start {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"cat\"],"
                "\"stdin\":true}}\n");
}

/* Nor is there a message about a signal that a user sent. */
static void a_joined_exec_sends_no_input(void)
{
    struct user user;

    user_start(&user, true, (const char *const[]){ "exec", "-i", "--key", "k", "s1", "cat", NULL });
    CHECK(write(user.in, "x", 1) == 1);
    user_finish(&user);
    CHECK_SEEN(143, "", "");
    check_heard(
        "ProcessService/Exec {\"sandboxId\":\"s1\",\"process\":{\"args\":[\"cat\"],\"stdin\":"
        "true},\"idempotencyKey\":\"k\"}\n");
}

static void processes_are_listed(void)
{
    HOLT("ps", "s1");
    CHECK(seen.status == 0 && strstr(seen.out, "ID  PID  STATE    STARTED"), "(%s)", seen.out);
    CHECK(strstr(seen.out, "p1   42  running") && !strstr(seen.out, "p2"), "(%s)", seen.out);
    CHECK(strstr(seen.out, "  w    sh -c a?b\n"), "(%s)", seen.out);
    HOLT("ps", "-a", "--tag", "x", "s1");
    CHECK(strstr(seen.out, "p2    -  exited 3 ") && strstr(seen.out, "  sh -c a?b ...\n"), "(%s)",
          seen.out);
    CHECK(strstr(seen.out, "p3    -  SIGSEGV ") && strstr(seen.out, "p5    -  timed out "), "(%s)",
          seen.out);
    CHECK(strstr(seen.out, "p4    -  killed by rollback "), "(%s)", seen.out);
    HOLT("ps", "s1", "-aq");
    CHECK_SEEN(0, "p1\np2\np3\np4\np5\n", "");
    HOLT("ps", "s1", "--json");
    CHECK(seen.status == 0 && strncmp(seen.out, "[{", 2) == 0 && strstr(seen.out, "\"id\":\"p1\""),
          "(%s)", seen.out);
    check_heard("ProcessService/List {\"sandboxId\":\"s1\"}\n"
                "ProcessService/List {\"sandboxId\":\"s1\",\"tag\":\"x\"}\n"
                "ProcessService/List {\"sandboxId\":\"s1\"}\n"
                "ProcessService/List {\"sandboxId\":\"s1\"}\n");
}

#define GAP "holt: 12345 bytes of stderr at offset 7 were not kept\n"

static void logs_show_both_streams_and_what_is_missing(void)
{
    HOLT("logs", "s1", "live");
    CHECK_SEEN(0, "one\nthree\n", GAP "two\n");
    HOLT("logs", "-f", "--since", "5", "--stderr-since=7", "s1", "p1");
    CHECK_SEEN(0, "one\nthree\n", GAP "two\n");
    HOLT("logs", "s1", "p1", "--tail", "1K");
    CHECK_SEEN(0, "one\nthree\n", GAP "two\n");
    HOLT("logs", "s1", "p9");
    CHECK_SEEN(3, "", "holt: no process 'p9' in sandbox 's1'\n");
    check_heard("ProcessService/Attach {\"sandboxId\":\"s1\",\"processId\":\"live\"}\n"
                "ProcessService/Attach {\"sandboxId\":\"s1\",\"processId\":\"p1\",\"stdoutOffset\":"
                "\"5\",\"stderrOffset\":\"7\",\"follow\":true}\n"
                "ProcessService/Attach {\"sandboxId\":\"s1\",\"processId\":\"p1\",\"replayBytes\":"
                "\"1024\"}\n"
                "ProcessService/Attach {\"sandboxId\":\"s1\",\"processId\":\"p9\"}\n");
}

static void attach_ends_as_the_process_does(void)
{
    HOLT("attach", "s1", "p1");
    CHECK_SEEN(6, "one\nthree\n", GAP "two\n");
    HOLT("attach", "s1", "p9");
    CHECK_SEEN(125, "", "holt: no process 'p9'\n");
    check_heard("ProcessService/Get {\"sandboxId\":\"s1\",\"processId\":\"p1\"}\n"
                "ProcessService/Attach {\"sandboxId\":\"s1\",\"processId\":\"p1\",\"replayBytes\":"
                "\"65536\",\"follow\":true}\n"
                "ProcessService/Get {\"sandboxId\":\"s1\",\"processId\":\"p9\"}\n");
}

static void kill_signals_all_and_reports_each_failure(void)
{
    HOLT("kill", "s1", "p1", "p9", "p2");
    CHECK_SEEN(3, "", "holt: no process 'p9'\n");
    HOLT("kill", "-s", "KILL", "--tree", "s1", "p1");
    CHECK_SEEN(0, "", "");
    check_heard("ProcessService/Signal {\"sandboxId\":\"s1\",\"processId\":\"p1\",\"signal\":15}\n"
                "ProcessService/Signal {\"sandboxId\":\"s1\",\"processId\":\"p9\",\"signal\":15}\n"
                "ProcessService/Signal {\"sandboxId\":\"s1\",\"processId\":\"p2\",\"signal\":15}\n"
                "ProcessService/Signal {\"sandboxId\":\"s1\",\"processId\":\"p1\",\"signal\":9,"
                "\"tree\":true}\n");
}

static void wait_has_the_status_of_the_last(void)
{
    HOLT("wait", "s1", "p1", "p2");
    CHECK_SEEN(4, "", "");
    check_heard("ProcessService/Wait {\"sandboxId\":\"s1\",\"processId\":\"p1\"}\n"
                "ProcessService/Wait {\"sandboxId\":\"s1\",\"processId\":\"p2\"}\n");
    HOLT("wait", "s1", "slow", "p1");
    CHECK_SEEN(124, "", "");
    HOLT("wait", "s1", "p9", "p1");
    CHECK_SEEN(125, "", "holt: no process 'p9'\n");
    check_heard("ProcessService/Wait {\"sandboxId\":\"s1\",\"processId\":\"slow\"}\n"
                "ProcessService/Wait {\"sandboxId\":\"s1\",\"processId\":\"p9\"}\n");
}

/* Returns whether the command exits with the status of a process, so that 125 must be its own. */
static bool passes_status(const char *command)
{
    return strcmp(command, "attach") == 0 || strcmp(command, "wait") == 0 ||
           strcmp(command, "exec") == 0;
}

static void wrong_words_reach_no_daemon(void)
{
    static const struct {
        const char *words[7];
        const char *why;
    } wrong[] = {
        { { "ps" }, "ps: needs an ID" },
        { { "ps", "a", "b" }, "ps: needs an ID" },
        { { "logs", "s1" }, "logs: needs an ID and a PROCESS" },
        { { "logs", "s1", "p1", "--since", "-1" }, "logs: --since '-1' is not a time like 10m" },
        { { "logs", "s1", "p1", "--tail", "x" }, "logs: --tail 'x' is not a number of lines" },
        { { "attach", "s1" }, "attach: needs an ID and a PROCESS" },
        { { "kill", "s1" }, "kill: needs an ID and a PROCESS" },
        { { "kill", "-s", "65", "s1", "p1" },
          "kill: --signal '65' is not a signal like TERM or 15" },
        { { "kill", "-s", "SIG", "s1", "p1" },
          "kill: --signal 'SIG' is not a signal like TERM or 15" },
        { { "wait", "s1" }, "wait: needs an ID and a PROCESS" },
        { { "wait", "--timeout", "x", "s1", "p1" }, "wait: --timeout 'x' is not a time like 30s" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        holt_words(wrong[i].words);
        CHECK(seen.status == (passes_status(wrong[i].words[0]) ? 125 : 2) && seen.out_len == 0,
              "(%zu)", i);
        CHECK(strstr(seen.err, wrong[i].why) == seen.err + strlen("holt: "), "(%s)", seen.err);
    }
    check_heard("");
}

static void signals_have_names_and_numbers(void)
{
    static const struct {
        const char *text;
        int number;
    } good[] = { { "TERM", SIGTERM },
                 { "SIGTERM", SIGTERM },
                 { "sigkill", SIGKILL },
                 { "winch", SIGWINCH },
                 { "1", 1 },
                 { "64", 64 } };
    static const char *const bad[] = { "", "0", "65", "-9", "SIG", "TERMINATE", "9x", "SIG9" };
    char text[SIGNAL_TEXT_SIZE];
    int number = 0;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK(signal_parse(good[i].text, &number) == 0 && number == good[i].number, "(%s)",
              good[i].text);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(signal_parse(bad[i], &number) < 0, "(%s)", bad[i]);
    signal_format(SIGHUP, text);
    CHECK_TEXT(text, "SIGHUP");
    signal_format(40, text);
    CHECK_TEXT(text, "signal 40");
}

/* Whatever is typed, in pieces of any size, comes out as it is unless the two keys are in it. */
static void only_the_two_keys_together_leave(void)
{
    static const struct {
        const char *typed, *passed;
        bool leaves;
    } cases[] = {
        { "abc", "abc", false },
        { "a\x10\x11z", "a", true },
        { "\x11\x10", "\x11", false }, /* the last is held back */
        { "\x10\x10\x11", "\x10", true },
        { "\x10x\x11", "\x10x\x11", false },
        { "\x10\x10\x10", "\x10\x10", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t len = strlen(cases[i].typed);

        for (size_t piece = 1; piece <= len; piece++) {
            struct leave_keys keys = { .is_held = false };
            char passed[16] = "";
            size_t count = 0;
            bool leaves = false;

            for (size_t at = 0; at < len && !leaves; at += piece)
                count +=
                    leave_keys_filter(&keys, cases[i].typed + at,
                                      len - at < piece ? len - at : piece, passed + count, &leaves);
            CHECK(count == strlen(cases[i].passed), "(%zu/%zu)", i, piece);
            CHECK_TEXT(passed, cases[i].passed);
            CHECK(leaves == cases[i].leaves);
        }
    }
}

static void all(void)
{
    find_binary();
    list_fill();
    start_daemon();
    RUN(a_detached_exec_prints_the_id);
    RUN(a_joined_exec_sends_no_input);
    RUN(processes_are_listed);
    RUN(logs_show_both_streams_and_what_is_missing);
    RUN(attach_ends_as_the_process_does);
    RUN(kill_signals_all_and_reports_each_failure);
    RUN(wait_has_the_status_of_the_last);
    RUN(wrong_words_reach_no_daemon);
    RUN(signals_have_names_and_numbers);
    RUN(only_the_two_keys_together_leave);
    clean_up();
}

int main(void)
{
    RUN(all);
    return 0;
}
