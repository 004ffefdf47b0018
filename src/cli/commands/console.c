// SPDX-License-Identifier: Apache-2.0
/* The commands for logins to the web console. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { BROWSER_MS = 5000 }; /* for the browser to read the file, before it is removed */

extern char **environ;

struct console_options {
    struct output_options output;
    bool wants_open;
};

static const struct option_row console_rows[] = {
    { "open", 0, NULL, "open it in the browser of this desktop",
      OPTION_FLAG(struct console_options, wants_open) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the link (the default)", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table console_table = { console_rows, ARRAY_SIZE(console_rows), NULL };

/* A daemon that was reached over HTTP has its console at the same address. */
static char *link_make(const struct holt_console_login *login)
{
    const char *host = getenv("HOLT_HOST");
    size_t len;

    if (!host || (strncmp(host, "http://", 7) != 0 && strncmp(host, "https://", 8) != 0))
        return xstrdup(login->url);
    len = strlen(host);
    while (len > 0 && host[len - 1] == '/')
        len--;
    return xasprintf("%.*s/#login=%s", (int)len, host, login->code);
}

/* Runs xdg-open, which every desktop has. Returns its status, or -errno. */
static int browser_run(char *page)
{
    char program[] = "xdg-open", *arguments[] = { program, page, NULL };
    pid_t pid;
    int status, r = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);

    if (r != 0)
        return -r;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECANCELED;
}

/* All users of a machine see the arguments of its processes. So the browser gets the name of a file
 * that only this user can read, and that leads on to the link. */
static int link_open(const char *link, struct err *err)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    cleanup_free char *page = xasprintf("%s/holt-console-XXXXXX.html", dir && *dir ? dir : "/tmp");
    cleanup_close int fd = mkostemps(page, (int)strlen(".html"), O_CLOEXEC);
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "make %s", page);
    r = dprintf(fd,
                "<!doctype html><meta charset=\"utf-8\"><title>Holt</title>"
                "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
                link);
    r = r < 0 ? -errno : browser_run(page);
    if (r == 0)
        clock_sleep_ms(BROWSER_MS);
    (void)unlink(page);
    if (r == 0)
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED, "xdg-open could not open a browser");
    return err_remedy(err, "open this link: %s", link);
}

static int link_use(const struct holt_console_login *login, const struct console_options *options)
{
    cleanup_free char *link = link_make(login);
    struct err err = { 0 };

    if (*link == '\0')
        (void)err_set(
            &err, ERR_BUSY,
            "browsers cannot reach the daemon: it does not listen on TCP (listen = none)");
    else if (options->wants_open)
        (void)link_open(link, &err);
    else
        (void)printf("%s\n", link);
    if (err.kind != ERR_NONE)
        return report_err(&err);
    if (!options->wants_open && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "The link works once, within a minute.\n");
    return command_printed();
}

static int console_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct console_options options = { .wants_open = false };
    cleanup_result struct holt_console_login *login = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_console, &options, argc, argv, &connection, &status))
        return status;
    if (holt_console_login(connection.holt, HOLT_NO_DEADLINE, &login, &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json)
        return output_json(login, NULL);
    return link_use(login, &options);
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_console_session_list *)result)->items[row]->id;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_console_session *session =
        ((const struct holt_console_session_list *)result)->items[row];
    char age[CELL_SIZE], used[CELL_SIZE], expires[TIME_TEXT_SIZE];

    (void)options;
    format_age(age, session->created_ms);
    format_age(used, session->last_used_ms);
    format_time_ms((uint64_t)session->expires_ms, expires);
    table_add(cells, "%s", session->id);
    table_add(cells, "%s", session->owner);
    table_add(cells, "%s", session->role);
    table_add(cells, "%s", *session->token_id ? session->token_id : "-");
    table_add(cells, "%s", *session->address ? session->address : "-");
    table_add(cells, "%s", age);
    table_add(cells, "%s", expires);
    table_add(cells, "%s", used);
    if (*session->sandbox_id)
        table_add(cells, "preview of %s:%" PRIu32, session->sandbox_id, session->port);
    else
        table_add(cells, "%s", *session->user_agent ? session->user_agent : "-");
}

static int sessions_print(const struct output_options *options,
                          const struct holt_console_session_list *list)
{
    static const char *const titles[] = { "ID",      "OWNER",   "ROLE", "TOKEN",  "ADDRESS",
                                          "CREATED", "EXPIRES", "USED", "BROWSER" };
    const struct listing listing = {
        .result = list,
        .field = "sessions",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .flexible = 0x100,
        .spare = 0x5a,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static int console_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_console_session_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_console_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_console_session_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return sessions_print(&options, list);
}

static int session_revoke(struct holt *holt, const char *sandbox, const char *session,
                          struct holt_error *error)
{
    (void)sandbox;
    return holt_console_session_revoke(holt, session, HOLT_NO_DEADLINE, error);
}

static int console_revoke_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_console_revoke, "a SESSION", false, session_revoke },
                    argc, argv);
}

const struct command command_console = {
    .group = "Host",
    .name = "console",
    .operands = "",
    .summary = "Print a link that logs in to the web console",
    .options = &console_table,
    .run = console_run,
};

const struct command command_console_ls = {
    .group = "Host",
    .name = "console ls",
    .operands = "",
    .summary = "List the logins to the web console",
    .options = &option_table_output,
    .run = console_ls_run,
};

const struct command command_console_revoke = {
    .group = "Host",
    .name = "console revoke",
    .operands = "SESSION...",
    .summary = "End logins to the web console",
    .options = &each_force_table,
    .run = console_revoke_run,
};
