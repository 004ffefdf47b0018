// SPDX-License-Identifier: Apache-2.0
/* `holt template pull`. */
#include "cli/template/pull.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/registry_login.h"
#include "holt.h"

struct pull {
    struct progress progress;
    char label[64];
};

static void source_show(void *context, uint64_t bytes, uint64_t total)
{
    struct pull *pull = context;

    pull->progress.total = total;
    progress_add(&pull->progress, bytes > pull->progress.done ? bytes - pull->progress.done : 0);
}

static int files_show(void *context, uint64_t bytes, uint64_t files)
{
    struct pull *pull = context;

    (void)bytes;
    if (files > 0)
        (void)snprintf(pull->label, sizeof(pull->label), "unpacking, %" PRIu64 " files", files);
    return 0;
}

static int image_pull(struct holt *holt, const struct image_ref *ref, struct holt_template **ret)
{
    cleanup_with(registry_login_done) struct registry_login login = { .user = NULL };
    struct holt_pull_options options = HOLT_INIT(holt_pull_options);
    struct pull pull = { .label = "pulling" };
    struct holt_error error;
    int r;

    registry_login_find(ref->registry, &login);
    options.reference = ref->familiar;
    options.username = login.user;
    options.password = login.password;
    options.on_progress = files_show;
    options.on_source = source_show;
    options.context = &pull;
    progress_begin(&pull.progress, pull.label, 0);
    r = holt_template_pull(holt, &options, HOLT_NO_DEADLINE, ret, &error);
    progress_end(&pull.progress);
    return r < 0 ? report_holt_error(&error) : STATUS_OK;
}

int pull_if_missing(const char *template)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_template_list *list = NULL;
    struct holt_error error;
    struct image_ref ref;

    if (!template || !image_ref_is(template) || image_ref_parse(template, &ref) < 0)
        return STATUS_OK;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i]->name, ref.familiar) == 0)
            return STATUS_OK;
    return image_pull(connection.holt, &ref, NULL);
}

static int template_pull_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a REFERENCE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_template *template = NULL;
    struct output_options options = { .wants_json = false };
    struct image_ref ref;
    int next, status;

    if (!command_parse(&command_template_pull, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_pull, &operands, argc - next))
        return STATUS_HOLT;
    if (image_ref_parse(argv[next], &ref) < 0)
        return report_usage("template pull: '%s' is not a reference: "
                            "[REGISTRY/]REPOSITORY[:TAG][@sha256:HEX]",
                            argv[next]);
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = image_pull(connection.holt, &ref, &template);
    return status != STATUS_OK ? status : output_id(&options, template, "template", template->name);
}

const struct command command_template_pull = {
    .group = "Templates",
    .name = "template pull",
    .operands = "REFERENCE",
    .summary = "Pull an image from a registry as a template",
    .example = "holt template pull debian:12",
    .options = &option_table_output,
    .run = template_pull_run,
};
