// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/mcp/bridge.h"
#include "cli/mcp/sandbox.h"

enum { NAME_MAX_BYTES = 128 };

struct mcp_options {
    struct common_options common;
    struct mcp_sandbox sandbox;
    bool is_read_only;
};

static int set_sandbox(void *into, const char *value, struct err *err)
{
    struct mcp_options *options = into;

    if (!is_handle(value, NAME_MAX_BYTES))
        return err_set(err, ERR_INVALID, "'%.100s' is not a valid sandbox id or name", value);
    options->sandbox.sandbox = value;
    return 0;
}

static int set_workspace(void *into, const char *value, struct err *err)
{
    struct mcp_options *options = into;
    struct stat st;

    if (stat(value, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "'%.100s' is not a directory", value);
    options->sandbox.workspace = value;
    return 0;
}

static const struct option_row rows[] = {
    { "sandbox", 0, "ID", "an existing sandbox to work in", OPTION_CALL(set_sandbox) },
    { "template", 't', "TEMPLATE", "the template of a new sandbox",
      OPTION_TEXT(struct mcp_options, sandbox.template) },
    { "workspace", 'w', "PATH", "a directory to copy to /workspace of a new sandbox",
      OPTION_CALL(set_workspace) },
    { "rm", 0, NULL, "use a new sandbox and remove it at the end",
      OPTION_FLAG(struct mcp_options, sandbox.is_temporary) },
    { "read-only", 0, NULL, "only tools that change nothing",
      OPTION_FLAG(struct mcp_options, is_read_only) },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int serve(struct mcp_options *options)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct mcp_bridge_options bridge = { .sandbox = &options->sandbox,
                                         .is_read_only = options->is_read_only };

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    bridge.holt = connection.holt;
    return mcp_bridge_run(&bridge);
}

static int mcp_run(int argc, char **argv)
{
    struct mcp_options options = { .is_read_only = false };
    const struct mcp_sandbox *sandbox = &options.sandbox;
    int next, status;

    if (!command_parse(&command_mcp, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_mcp, "takes no arguments");
    if (sandbox->sandbox && (sandbox->template || sandbox->workspace || sandbox->is_temporary))
        return command_misused(
            &command_mcp,
            "--sandbox names an existing sandbox; it excludes --template, --workspace and --rm");
    status = mcp_sandbox_init(&options.sandbox);
    if (status == STATUS_OK)
        status = serve(&options);
    mcp_sandbox_done(&options.sandbox);
    return status;
}

const struct command command_mcp = {
    .group = "Tools",
    .name = "mcp",
    .operands = "",
    .summary = "Serve the tools to an agent over stdin and stdout (MCP)",
    .example = "claude mcp add holt -- holt mcp --workspace .",
    .options = &table,
    .run = mcp_run,
};
