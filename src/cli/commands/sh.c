// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { OUTPUT_MAX = 1024 * 1024 };

struct sh_options {
    struct common_options common;
    uint64_t timeout_ms;
};

struct sh {
    const char *name;
    struct buf output;
    bool has_ended;
    int status;
};

static int set_timeout(void *into, const char *value, struct err *err)
{
    struct sh_options *options = into;

    if (parse_duration_ms(value, &options->timeout_ms) < 0 || options->timeout_ms == 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not a time, as 30s or 5m", value);
    return 0;
}

static int write_output(struct sh *sh, const json_t *event, const char *name, int fd)
{
    struct err err;
    int r;

    buf_clear(&sh->output);
    if (json_get_bytes(event, name, &sh->output, &err) < 0)
        return report_unreadable(err.msg);
    r = write_all(fd, sh->output.data, sh->output.len);
    if (r == -EPIPE)
        return STATUS_BROKEN_PIPE;
    return r < 0 ? report("cannot write to %s: %s", name, strerror(-r)) : STATUS_OK;
}

static int take_end(struct sh *sh, const json_t *ended)
{
    bool is_timed_out = false, is_shell_ended = false;
    const char *reason = "";
    uint32_t code = 0;
    struct err err;

    if (json_get_u32(ended, "exitCode", &code, &err) < 0 ||
        json_get_bool(ended, "timedOut", &is_timed_out, &err) < 0 ||
        json_get_bool(ended, "shellEnded", &is_shell_ended, &err) < 0 ||
        json_get_text(ended, "reason", &reason, &err) < 0)
        return report_unreadable(err.msg);
    if (is_timed_out)
        (void)report("the command timed out%s", is_shell_ended ? ", and its shell had to end" : "");
    else if (is_shell_ended && *reason)
        (void)report("shell '%.70s' ended: %s", sh->name, reason);
    sh->has_ended = true;
    sh->status = (int)(code & 0xff);
    return STATUS_OK;
}

static int take_event(const json_t *event, void *context)
{
    const json_t *ended = NULL;
    struct sh *sh = context;
    struct err err;
    int status;

    if (json_get_object(event, "ended", &ended, &err) < 0)
        return report_unreadable(err.msg);
    if (ended)
        return take_end(sh, ended);
    status = write_output(sh, event, "stdout", STDOUT_FILENO);
    return status == STATUS_OK ? write_output(sh, event, "stderr", STDERR_FILENO) : status;
}

static int run(const char *id, struct sh *sh, const char *command, uint64_t timeout_ms)
{
    struct holt_error error;
    int r = call_stream("holt.v1.ShellService/Run",
                        json_pack("{s:s, s:s, s:s, s:o}", "sandboxId", id, "name", sh->name,
                                  "command", command, "timeoutMs", json_u64(timeout_ms)),
                        take_event, sh, &error);

    if (r < 0)
        return report_holt_error(&error);
    if (r > 0)
        return r;
    return sh->has_ended ? sh->status : report("the daemon ended the command without an outcome");
}

static const struct option_row rows[] = {
    { "timeout", 0, "TIME", "interrupt the command after this time (30s, 5m)", set_timeout },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int sh_run(int argc, char **argv)
{
    static const struct operands operands = { 3, 3, "an ID, a NAME and one COMMAND" };
    struct sh_options options = { .timeout_ms = 0 };
    struct sh sh = { .output = BUF_INIT(OUTPUT_MAX) };
    int next, status;

    if (!command_parse(&command_sh, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_sh, &operands, argc - next))
        return STATUS_HOLT;
    /* The output may be longer than its reader wants it. */
    (void)signal(SIGPIPE, SIG_IGN);
    sh.name = argv[next + 1];
    status = run(argv[next], &sh, argv[next + 2], options.timeout_ms);
    buf_done(&sh.output);
    return status;
}

const struct command command_sh = {
    .group = "Shells",
    .name = "sh",
    .operands = "ID SHELL COMMAND",
    .summary = "Run one command in a shell that stays",
    .example = "holt sh work main 'cd /workspace && make'",
    .options = &table,
    .passes_status = true,
    .run = sh_run,
};
