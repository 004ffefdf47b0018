// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/tree.h"
#include "daemon/command_line.h"
#include "daemon/lock.h"
#include "daemon/notify.h"
#include "host/doctor.h"
#include "host/host.h"

enum { EXIT_REFUSED = 125 };

/* In the order in which they come up. */
struct daemon {
    int run_lock;
    int state_lock;
    struct host *host;
    struct api *api;
};

/* No handler ever runs: signals are read in daemon_wait, and every thread inherits the mask. Only
 * faults stay open, for the reports of sanitizers. */
static void signals_block(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
    sigset_t all;

    (void)sigfillset(&all);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        (void)sigdelset(&all, faults[i]);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* What we were started with must neither reach a sandbox nor decide the mode of a file. */
static void process_prepare(void)
{
    struct rlimit files;

    (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)umask(022);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void log_level_apply(const char *name)
{
    static const char *const names[] = {
        [LOG_ERROR] = "error",
        [LOG_WARN] = "warn",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            log_set_level((enum log_level)i);
}

static int directory_claim(const struct lock_spec *spec, mode_t mode, int *ret_lock,
                           struct err *err)
{
    int r = tree_make(spec->dir, mode);

    if (r < 0)
        return err_sys(err, r, "make %s", spec->dir);
    return lock_take(spec, ret_lock, err);
}

static int daemon_start(struct daemon *daemon, const struct config *config, struct err *err)
{
    const struct lock_spec run = { config->run, "holt.lock", "--run" };
    const struct lock_spec state = { config->state, "state.lock", "--state" };
    int r;

    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "the daemon must be started by root");
    r = directory_claim(&run, 0755, &daemon->run_lock, err);
    if (r == 0)
        r = directory_claim(&state, 0700, &daemon->state_lock, err);
    if (r == 0)
        r = host_open(config, &daemon->host, err);
    if (r == 0)
        r = api_start(config, daemon->host, &daemon->api, err);
    return r;
}

static void daemon_wait(void)
{
    sigset_t ends;
    int signal;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    while ((signal = sigwaitinfo(&ends, NULL)) < 0 && errno == EINTR)
        ;
    log_info("%s: stopping", signal == SIGINT ? "interrupted" : "terminated");
}

static void daemon_stop(struct daemon *daemon)
{
    if (daemon->host)
        host_drain(daemon->host);
    api_stop(daemon->api);
    host_close(daemon->host);
    daemon->state_lock = fd_close(daemon->state_lock);
    daemon->run_lock = fd_close(daemon->run_lock);
}

static int fail(const struct command_line *line, const struct err *err)
{
    (void)fprintf(stderr, "holtd: %s\n", err->msg);
    notify_error(line->ready_fd, err->msg);
    return EXIT_REFUSED;
}

static int serve(struct command_line *line)
{
    struct daemon daemon = { .run_lock = -EBADF, .state_lock = -EBADF };
    struct err err = { 0 };
    int status = 0;

    if (daemon_start(&daemon, &line->config, &err) < 0) {
        status = fail(line, &err);
    } else {
        notify_ready(line->ready_fd);
        notify_systemd();
        daemon_wait();
    }
    daemon_stop(&daemon);
    return status;
}

/* Whatever is answered on stdout and needs no daemon; otherwise serves. */
static int dispatch(struct command_line *line)
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
    if (line->doctor)
        return doctor_run(&line->config, line->json, stdout);
    log_level_apply(line->config.log);
    return serve(line);
}

int main(int argc, char **argv)
{
    struct command_line line;
    struct err err = { 0 };
    int status;

    signals_block();
    process_prepare();
    fault_init();
    status = command_line_read(argc, argv, &line, &err) < 0 ? fail(&line, &err) : dispatch(&line);
    command_line_done(&line);
    return status;
}
