// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/report.h"

const struct command *const commands[] = {
    &command_run,
    &command_create,
    &command_ls,
    &command_inspect,
    &command_stats,
    &command_top,
    &command_update,
    &command_pause,
    &command_resume,
    &command_stop,
    &command_start,
    &command_rm,
    &command_prune,
    &command_cp,
    &command_export,
    &command_import,

    &command_exec,
    &command_launch,
    &command_ps,
    &command_logs,
    &command_attach,
    &command_kill,
    &command_wait,
    &command_port,
    &command_port_ls,

    &command_shell,
    &command_sh,
    &command_shells,
    &command_shells_rm,

    &command_tool,
    &command_tools,

    &command_turn,
    &command_snapshot,
    &command_snapshots,
    &command_snapshots_rm,
    &command_snapshots_note,
    &command_rollback,
    &command_fork,
    &command_diff,

    &command_net_show,
    &command_net_set,
    &command_net_allow,
    &command_net_deny,
    &command_net_log,
    &command_net_learn,
    &command_net_test,

    &command_mcp,

    &command_agent_ls,
    &command_agent_show,
    &command_agent_run,
    &command_agent_serve,
    &command_agent_install,

    &command_template_build,
    &command_template_pull,
    &command_template_push,
    &command_template_import,
    &command_template_commit,
    &command_template_ls,
    &command_template_rm,
    &command_template_prune,
    &command_template_net,
    &command_template_share,
    &command_template_runtime,

    &command_backup,
    &command_backup_ls,
    &command_backup_rm,
    &command_backup_restore,
    &command_backup_gc,

    &command_registry_login,
    &command_registry_logout,
    &command_registry_ls,
    &command_secret_set,
    &command_secret_ls,
    &command_secret_rotate,
    &command_secret_rm,
    &command_codebase_add,
    &command_codebase_apply,
    &command_codebase_branch,
    &command_codebase_ls,
    &command_codebase_log,
    &command_codebase_rm,
    &command_changes,
    &command_commit,
    &command_discard,
    &command_rebase,
    &command_merge,
    &command_perm_ls,
    &command_perm_set,
    &command_perm_add,
    &command_perm_rm,
    &command_perm_why,
    &command_perm_test,
    &command_volume_adopt,
    &command_volume_create,
    &command_volume_ls,
    &command_volume_rm,
    &command_volume_share,
    &command_llm_models,
    &command_llm_usage,
    &command_owner_ls,
    &command_owner_show,
    &command_owner_set,
    &command_owner_rm,
    &command_token_create,
    &command_token_ls,
    &command_token_rm,
    &command_console,
    &command_console_ls,
    &command_console_revoke,
    &command_audit,
    &command_events,
    &command_info,
    &command_doctor,
    &command_completion,
    &command_version,
    &command_help,
    NULL,
};

struct main_options {
    struct common_options common;
    bool wants_version;
};

static const struct option_row rows[] = {
    { "version", 'V', NULL, "show the version", OPTION_FLAG(struct main_options, wants_version) },
    OPTION_HELP,
};

static const struct option_table options_table = { rows, ARRAY_SIZE(rows), NULL };

/* A shell can start us with 0, 1 or 2 closed; the first socket would then become our stdout. Opened
 * for reading only, so that a write still fails. */
static int hold_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
            return -1;
    return 0;
}

static int print_help(void)
{
    int status = commands_help(0, NULL);

    (void)printf("\nOptions:\n");
    options_help(&options_table, stdout);
    return fflush(stdout) == 0 ? status : STATUS_HOLT;
}

int main(int argc, char **argv)
{
    struct main_options options = { .wants_version = false };
    struct err err;
    int next;

    if (hold_standard_fds() < 0)
        return STATUS_HOLT;
    if (options_parse(&options_table, &options, argc, argv, &next, &err) < 0)
        return report_exit_status(report_usage("%s; see 'holt --help'", err.msg));
    if (options.common.wants_help)
        return print_help();
    if (options.wants_version)
        return command_version.run(1, argv);
    if (next == argc)
        return report_exit_status(report_usage("no command given; see 'holt --help'"));
    return commands_run(argc - next, argv + next);
}
