// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/log.h"
#include "daemon/command_line.h"
#include "daemon/event_log.h"
#include "daemon/frontends.h"
#include "daemon/lock.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/watchdog.h"
#include "host/core/host.h"
#include "host/core/sysctl.h"
#include "host/observe/doctor.h"
#include "host/prove/prove.h"
#include "http/server.h"
#include "toolbox/tool.h"

#define OOM_SCORE_TEXT "-900"

enum {
    EXIT_REFUSED = 125,
    DRAIN_MS = 5000,
    TOOLS_PAUSE_MS = 50,
    START_US = 600 * 1000 * 1000,
    STOP_US = 60 * 1000 * 1000,
    OOM_SCORE_ADJUST = -900,
};

/* In the order of their start. */
struct daemon {
    int run_lock;
    int state_lock;
    struct host *host;
    struct event_log *event_log;
    struct frontends *frontends;
    struct http_server *http;
    struct watchdog *watchdog;
};

/* No signal handler ever runs: daemon_wait reads signals, and every thread inherits the mask. Only
 * faults are not blocked, for the reports of sanitizers. */
static void signals_block(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
    sigset_t all;

    (void)sigfillset(&all);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        (void)sigdelset(&all, faults[i]);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* When the machine has no memory left, the daemon should be the last to go: without it nobody can
 * end a sandbox. Refused without CAP_SYS_RESOURCE. Zygotes give the protection up. */
static void protect_from_oom(void)
{
    static const char path[] = "/proc/self/oom_score_adj";
    long long now;

    if (file_read_number_at(AT_FDCWD, path, &now) == 0 && now > OOM_SCORE_ADJUST)
        (void)file_write_at(AT_FDCWD, path, OOM_SCORE_TEXT);
}

/* The inherited environment must neither reach a sandbox nor determine the modes of files. */
static void process_prepare(void)
{
    struct rlimit files;

    (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)umask(022);
    protect_from_oom();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void warn_of(int result, const struct err *err)
{
    if (result < 0)
        log_warn("%s; %s", err->msg, err->remedy);
}

/* Reports what takes from the limits of sandboxes; they work nevertheless. Before any thread. */
static void machine_prepare(const struct config *config)
{
    struct err err = { 0 };

    warn_of(sysctl_check_files(config, true, &err), &err);
    warn_of(sysctl_check_stamps(true, &err), &err);
    warn_of(host_check_netlink(&err), &err);
}

static int directory_claim(const struct lock_spec *spec, mode_t mode, int *ret_lock,
                           struct err *err)
{
    int r = tree_make(spec->dir, mode);

    if (r < 0)
        return err_sys(err, r, "create %s", spec->dir);
    return lock_take(spec, ret_lock, err);
}

static int daemon_start(struct daemon *daemon, const struct config *config, struct err *err)
{
    const struct lock_spec run = { config->run, "holt.lock", "--run" };
    const struct lock_spec state = { config->state, "state.lock", "--state" };
    int r;

    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "holtd must be started as root");
    /* Sandboxes are taken over one by one, and storage may have to be checked. */
    notify_systemd("EXTEND_TIMEOUT_USEC=%d\nSTATUS=Taking over sandboxes", START_US);
    r = directory_claim(&run, 0755, &daemon->run_lock, err);
    if (r == 0)
        r = directory_claim(&state, 0700, &daemon->state_lock, err);
    if (r == 0)
        machine_prepare(config);
    if (r == 0)
        r = host_open(config, &toolbox_extension, &daemon->host, err);
    if (r == 0)
        r = event_log_start(daemon->host, &daemon->event_log, err);
    if (r == 0)
        r = frontends_open(config, daemon->host, &daemon->frontends, err);
    if (r == 0)
        r = frontends_serve(daemon->frontends, config, &daemon->http, err);
    return r == 0 ? watchdog_start(daemon->host, config->run, &daemon->watchdog, err) : r;
}

/* Waits for a signal to stop; on SIGHUP, reads the configuration again. */
static void daemon_wait(int argc, char *const *argv, struct command_line *line, struct host *host)
{
    sigset_t wanted;
    int signal;

    (void)sigemptyset(&wanted);
    (void)sigaddset(&wanted, SIGTERM);
    (void)sigaddset(&wanted, SIGINT);
    (void)sigaddset(&wanted, SIGHUP);
    for (;;) {
        signal = sigwaitinfo(&wanted, NULL);
        if (signal == SIGHUP)
            reload(argc, argv, line, host);
        else if (signal > 0)
            break;
    }
    log_info("%s: stopping", signal == SIGINT ? "interrupted" : "terminated");
}

/* With --stop-all: lets tool calls end, until shutdown.timeout or a second signal. */
static void tools_await(struct host *host)
{
    const struct timespec pause = { .tv_nsec = TOOLS_PAUSE_MS * 1000000L };
    uint64_t ms = host_refuse_tools(host), end_ms = clock_after_ms(ms);
    sigset_t wanted;

    (void)sigemptyset(&wanted);
    (void)sigaddset(&wanted, SIGTERM);
    (void)sigaddset(&wanted, SIGINT);
    if (ms > 0 && host_has_tools(host))
        notify_systemd("EXTEND_TIMEOUT_USEC=%" PRIu64 "\nSTATUS=Waiting for tool calls",
                       ms * 1000 + STOP_US);
    while (host_has_tools(host) && clock_ms() < end_ms && sigtimedwait(&wanted, NULL, &pause) < 0)
        ;
}

/* Gives requests in progress a moment to end; subscribers learn why their streams end. */
static void daemon_stop(struct daemon *daemon)
{
    notify_systemd("STOPPING=1\nSTATUS=Stopping");
    if (daemon->http)
        tools_await(daemon->host);
    watchdog_stop(daemon->watchdog);
    if (daemon->host)
        host_drain(daemon->host);
    http_drain(daemon->http, DRAIN_MS);
    http_stop(daemon->http);
    frontends_close(daemon->frontends);
    event_log_stop(daemon->event_log);
    if (!host_close(daemon->host))
        return; /* the locks are held until the process has ended, and its threads with it */
    daemon->state_lock = fd_close(daemon->state_lock);
    daemon->run_lock = fd_close(daemon->run_lock);
}

static int daemon_fail(const struct command_line *line, const struct err *err)
{
    (void)fprintf(stderr, "holtd: %s\n", err->msg);
    if (err->remedy[0])
        (void)fprintf(stderr, "       %s\n", err->remedy);
    notify_error(line->ready_fd, err->msg);
    return EXIT_REFUSED;
}

static int daemon_serve(int argc, char *const *argv, struct command_line *line)
{
    struct daemon daemon = { .run_lock = -EBADF, .state_lock = -EBADF };
    struct err err = { 0 };
    int status = 0;

    if (daemon_start(&daemon, &line->config, &err) < 0) {
        status = daemon_fail(line, &err);
    } else {
        notify_ready(line->ready_fd);
        notify_systemd("READY=1\nSTATUS=Ready");
        daemon_wait(argc, argv, line, daemon.host);
    }
    daemon_stop(&daemon);
    return status;
}

/* Handles the options that only print something, otherwise serves. */
static int daemon_run(int argc, char *const *argv, struct command_line *line)
{
    if (line->help) {
        command_line_help(stdout);
        return 0;
    }
    if (line->version) {
        (void)printf("holtd %s\n", HOLT_VERSION);
        return 0;
    }
    if (line->print_config) {
        config_print(&line->config, stdout);
        return 0;
    }
    if (line->prove)
        return prove_run(&line->config, line->json, stdout);
    if (line->doctor)
        return doctor_run(&line->config, line->json, line->fix, stdout);
    reload_log_level(line->config.log);
    return daemon_serve(argc, argv, line);
}

int main(int argc, char **argv)
{
    struct command_line line;
    struct err err = { 0 };
    int status;

    signals_block();
    process_prepare();
    fault_init();
    status = command_line_read(argc, argv, &line, &err) < 0 ? daemon_fail(&line, &err)
                                                            : daemon_run(argc, argv, &line);
    command_line_done(&line);
    return status;
}
