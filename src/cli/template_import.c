// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "holt.h"

/* One line that is written over and over; only where somebody is looking. */
static void show_progress(const json_t *progress)
{
    uint64_t bytes = 0, files = 0;
    struct err ignored;

    if (!isatty(STDERR_FILENO) || json_get_u64(progress, "bytes", &bytes, &ignored) < 0 ||
        json_get_u64(progress, "files", &files, &ignored) < 0)
        return;
    (void)fprintf(stderr, "\r\033[K%" PRIu64 " files, %" PRIu64 " MiB", files, bytes >> 20);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
}

/* 1 when the message was the last event, 0 for progress. */
static int handle_event(const char *message, size_t len, struct err *err)
{
    cleanup_json json_t *event = NULL;
    const json_t *progress = NULL, *template = NULL;

    if (json_parse_object(message, len, &event, err) < 0 ||
        json_get_object(event, "progress", &progress, err) < 0 ||
        json_get_object(event, "template", &template, err) < 0)
        return -1;
    if (progress)
        show_progress(progress);
    return template != NULL;
}

/* Follows the import to its end: the exit status. */
static int follow(struct holt_stream *stream)
{
    struct holt_error error;
    const char *message;
    bool is_done = false;
    size_t len;
    int r;

    while ((r = holt_stream_next(stream, &message, &len, &error)) > 0) {
        struct err err;
        int event = handle_event(message, len, &err);

        if (event < 0)
            return report("the daemon's answer cannot be read: %s", err.msg);
        is_done = is_done || event > 0;
    }
    clear_progress();
    if (r < 0)
        return report_holt_error(&error);
    return is_done ? STATUS_OK : report("the daemon ended the import without a template");
}

static int import(const char *name, const char *path)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *message = json_pack("{s:s,s:s}", "name", name, "path", path);
    cleanup_free char *request = message ? json_dumps(message, JSON_COMPACT) : NULL;
    struct holt_stream *stream;
    struct holt_error error;
    int status;

    if (!request)
        return report("template import: the name or the path is not UTF-8");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_stream_open(connection.holt, "holt.v1.TemplateService/Import", request, &stream,
                         &error) < 0)
        return report_holt_error(&error);
    status = follow(stream);
    holt_stream_close(stream);
    return status;
}

static int template_import_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    cleanup_free char *path = NULL;
    int next, status;

    if (!command_parse(&command_template_import, &options, argc, argv, &next, &status))
        return status;
    if (argc - next != 2)
        return command_misused(&command_template_import, "needs a NAME and a PATH");
    path = realpath(argv[next + 1], NULL);
    if (!path)
        return report("template import: %s: %s", argv[next + 1], strerror(errno));
    status = import(argv[next], path);
    if (status != STATUS_OK)
        return status;
    (void)printf("%s\n", argv[next]);
    return fflush(stdout) == 0 ? STATUS_OK : report("cannot write to stdout");
}

static const struct option_row rows[] = { OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_import = {
    .name = "template import",
    .operands = "NAME PATH",
    .summary = "Make a template from a directory, an archive or an image",
    .options = &table,
    .run = template_import_run,
};
