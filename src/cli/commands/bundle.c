// SPDX-License-Identifier: Apache-2.0
/* `holt export` and `holt import`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct transfer {
    struct progress progress;
    int failed; /* errno of standard input or output; 0: none */
};

/* --- export ----------------------------------------------------------------------------------- */

static void export_size_show(void *context, uint64_t bytes)
{
    struct transfer *transfer = context;

    transfer->progress.label = "exporting";
    transfer->progress.total = bytes;
}

static int export_write_out(void *context, const char *data, size_t len)
{
    struct transfer *transfer = context;
    int r = write_all(STDOUT_FILENO, data, len);

    progress_add(&transfer->progress, len);
    transfer->failed = r < 0 ? -r : 0;
    return r;
}

static const struct option_row export_rows[] = { OPTION_HELP };
static const struct option_table export_table = { export_rows, ARRAY_SIZE(export_rows), NULL };

static int export_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "an ID and at most one SNAPSHOT" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_export_options call = HOLT_INIT(holt_export_options);
    struct common_options options = { .wants_help = false };
    struct transfer transfer = { .failed = 0 };
    struct holt_error error;
    int next, status, r;

    if (!command_parse(&command_export, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_export, &operands, argc - next))
        return STATUS_HOLT;
    if (isatty(STDOUT_FILENO))
        return report_usage("a bundle is an archive: write it to a file, holt export %s > %s.tar",
                            argv[next], argv[next]);
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    call.snapshot = argc - next > 1 ? argv[next + 1] : NULL;
    call.on_data = export_write_out;
    call.on_size = export_size_show;
    call.context = &transfer;
    progress_begin(&transfer.progress, "reading", 0);
    r = holt_export(connection.holt, argv[next], &call, HOLT_NO_DEADLINE, &error);
    progress_end(&transfer.progress);
    if (transfer.failed)
        return report("cannot write the bundle: %s", strerror(transfer.failed));
    return r < 0 ? report_holt_error(&error) : STATUS_OK;
}

const struct command command_export = {
    .group = "Sandboxes",
    .name = "export",
    .operands = "ID [SNAPSHOT]",
    .summary = "Write a sandbox with its history to standard output, as an OCI image in a tar "
               "archive",
    .options = &export_table,
    .run = export_run,
};

/* --- import ----------------------------------------------------------------------------------- */

struct import_options {
    struct output_options output;
    const char *name;
};

static const struct option_row import_rows[] = {
    { "name", 0, "NAME", "name of the new sandbox", OPTION_NAME(struct import_options, name) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};
static const struct option_table import_table = { import_rows, ARRAY_SIZE(import_rows), NULL };

static ptrdiff_t import_read_in(void *context, void *data, size_t size)
{
    struct transfer *transfer = context;
    ssize_t n;

    do
        n = read(STDIN_FILENO, data, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        transfer->failed = errno;
    else
        progress_add(&transfer->progress, (uint64_t)n);
    if (n == 0)
        transfer->progress.label = "unpacking";
    return n;
}

/* Returns the bytes that standard input has; 0: unknown. */
static uint64_t input_size(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static int import_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_import_bundle_options call = HOLT_INIT(holt_import_bundle_options);
    struct import_options options = { .name = NULL };
    struct transfer transfer = { .failed = 0 };
    struct holt_error error;
    int next, status, r;

    if (!command_parse(&command_import, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_import, "takes no arguments");
    if (isatty(STDIN_FILENO))
        return report_usage("a bundle is read from standard input: holt import < FILE");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    call.name = options.name;
    call.read = import_read_in;
    call.context = &transfer;
    progress_begin(&transfer.progress, "importing", input_size());
    r = holt_import_bundle(connection.holt, &call, HOLT_NO_DEADLINE, &sandbox, &error);
    progress_end(&transfer.progress);
    if (transfer.failed)
        return report("cannot read the bundle: %s", strerror(transfer.failed));
    if (r < 0)
        return report_holt_error(&error);
    return output_id(&options.output, sandbox, "sandbox", sandbox->id);
}

const struct command command_import = {
    .group = "Sandboxes",
    .name = "import",
    .operands = "",
    .summary = "Create and start a sandbox from a bundle of `holt export` on standard input",
    .options = &import_table,
    .run = import_run,
};
