// SPDX-License-Identifier: Apache-2.0
/* `holt template push`. */
#include "base/cleanup.h"
#include "base/text/image_ref.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/registry_login.h"
#include "holt.h"

static void source_show(void *context, uint64_t bytes, uint64_t total)
{
    struct progress *progress = context;

    progress->total = total;
    progress_add(progress, bytes > progress->done ? bytes - progress->done : 0);
}

static int image_push(struct holt *holt, const char *template, const struct image_ref *ref,
                      struct holt_pushed_image **ret)
{
    cleanup_with(registry_login_done) struct registry_login login = { .user = NULL };
    struct holt_push_options options = HOLT_INIT(holt_push_options);
    struct progress progress;
    struct holt_error error;
    int r;

    registry_login_find(ref->registry, &login);
    options.name = template;
    options.reference = ref->familiar;
    options.username = login.user;
    options.password = login.password;
    options.on_source = source_show;
    options.context = &progress;
    progress_begin(&progress, "pushing", 0);
    r = holt_template_push(holt, &options, HOLT_NO_DEADLINE, ret, &error);
    progress_end(&progress);
    return r < 0 ? report_holt_error(&error) : STATUS_OK;
}

static int template_push_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "a TEMPLATE and a REFERENCE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_pushed_image *image = NULL;
    struct output_options options = { .wants_json = false };
    const char *reference;
    struct image_ref ref;
    int next, status;

    if (!command_parse(&command_template_push, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_push, &operands, argc - next))
        return STATUS_HOLT;
    reference = argv[argc - 1];
    if (!image_ref_is(reference) || image_ref_parse(reference, &ref) < 0 || ref.digest[0])
        return report_usage("template push: '%s' is not a reference with a tag: "
                            "[REGISTRY/]REPOSITORY:TAG",
                            reference);
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = image_push(connection.holt, argv[next], &ref, &image);
    return status != STATUS_OK ? status : output_id(&options, image, "image", image->digest);
}

const struct command command_template_push = {
    .group = "Templates",
    .name = "template push",
    .operands = "TEMPLATE [REFERENCE]",
    .summary = "Push a template to a registry as an image; by default under its own name",
    .example = "holt template push tools registry.example/team/tools:1",
    .options = &option_table_output,
    .run = template_push_run,
};
