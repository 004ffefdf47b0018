// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/commands/templates.h"
#include "cli/core/command.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct import {
    struct progress progress;
    char label[64];
    bool is_done;
};

/* The daemon tells how much it has written so far. How much there will be, nobody knows before. */
static void show_progress(struct import *import, const json_t *progress)
{
    uint64_t bytes = 0, files = 0;
    struct err ignored;

    if (json_get_u64(progress, "bytes", &bytes, &ignored) < 0 ||
        json_get_u64(progress, "files", &files, &ignored) < 0 || bytes < import->progress.done)
        return;
    (void)snprintf(import->label, sizeof(import->label), "%" PRIu64 " files", files);
    progress_add(&import->progress, bytes - import->progress.done);
}

static int handle_event(const json_t *event, void *context)
{
    const json_t *progress = NULL, *template = NULL;
    struct import *import = context;
    struct err err;

    if (json_get_object(event, "progress", &progress, &err) < 0 ||
        json_get_object(event, "template", &template, &err) < 0)
        return report_unreadable(err.msg);
    if (progress)
        show_progress(import, progress);
    import->is_done = import->is_done || template;
    return STATUS_OK;
}

int template_import_follow(const char *name, const char *path, json_t *settings)
{
    struct import import = { .is_done = false };
    struct holt_error error;
    int r;

    progress_begin(&import.progress, import.label, 0);
    r = call_stream("holt.v1.TemplateService/Import",
                    json_pack("{s:s, s:s, s:o*}", "name", name, "path", path, "settings", settings),
                    handle_event, &import, &error);
    progress_end(&import.progress);
    if (r < 0)
        return report_holt_error(&error);
    if (r == 0 && !import.is_done)
        return report("the daemon ended the import without a template");
    return r;
}

static int template_import_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "a NAME and a PATH" };
    cleanup_free char *path = NULL;
    int next, status;

    if (!command_parse_plain(&command_template_import, &operands, argc, argv, &next, &status))
        return status;
    path = realpath(argv[next + 1], NULL);
    if (!path)
        return report("template import: %s: %s", argv[next + 1], strerror(errno));
    status = template_import_follow(argv[next], path, NULL);
    if (status != STATUS_OK)
        return status;
    (void)printf("%s\n", argv[next]);
    return command_printed();
}

const struct command command_template_import = {
    .group = "Templates",
    .name = "template import",
    .operands = "NAME PATH",
    .summary = "Make a template from a directory, an archive or an image",
    .example = "holt template import debian rootfs.tar.zst",
    .options = &option_table_help,
    .run = template_import_run,
};
