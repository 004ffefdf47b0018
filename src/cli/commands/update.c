// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/lifetime.h"
#include "cli/options/words.h"
#include "holt.h"

struct update_options {
    struct output_options output;
    struct holt_update_options request; /* all but labels and volumes */
    struct words labels;
    struct words removed_labels;
    struct words volumes;
};

static void options_done(struct update_options *options)
{
    words_done(&options->labels);
    words_done(&options->removed_labels);
    words_done(&options->volumes);
}

static int set_label(void *into, const char *value, struct err *err)
{
    return words_add_label(&((struct update_options *)into)->labels, value, err);
}

static int set_removed_label(void *into, const char *value, struct err *err)
{
    if (*value == '\0' || strchr(value, '='))
        return err_set(err, ERR_INVALID, "--remove-label '%.100s' is not the key of a label",
                       value);
    words_add(&((struct update_options *)into)->removed_labels, value);
    return 0;
}

static int set_ttl(void *into, const char *value, struct err *err)
{
    struct holt_update_options *request = &((struct update_options *)into)->request;

    if (lifetime_parse_change(value, &request->sets_ttl, &request->ttl_ms,
                              &request->expire_action) < 0)
        return err_set(err, ERR_INVALID,
                       "--ttl '%.100s' is not a time like 1h or 1h:pause, or an action like :pause",
                       value);
    return 0;
}

static int set_idle_timeout(void *into, const char *value, struct err *err)
{
    struct holt_update_options *request = &((struct update_options *)into)->request;

    if (lifetime_parse_change(value, &request->sets_idle_timeout, &request->idle_timeout_ms,
                              &request->idle_action) < 0)
        return err_set(err, ERR_INVALID,
                       "--idle-timeout '%.100s' is not a time like 10m or 10m:pause, or an action "
                       "like :pause",
                       value);
    return 0;
}

static int set_max_snapshots(void *into, const char *value, struct err *err)
{
    struct holt_update_options *request = &((struct update_options *)into)->request;
    uint64_t number;

    if (parse_u64(value, &number) < 0 || number > UINT32_MAX)
        return err_set(err, ERR_INVALID, "--max-snapshots '%.100s' is not a number like 20", value);
    request->sets_max_snapshots = true;
    request->max_snapshots = (uint32_t)number;
    return 0;
}

static int set_volume(void *into, const char *value, struct err *err)
{
    struct update_options *options = into;

    options->request.sets_volumes = true;
    return words_add_volume(&options->volumes, value, err);
}

static const struct option_row rows[] = {
    { "name", 0, "NAME", "a new unique name; '' removes the name",
      OPTION_TEXT(struct update_options, request.name) },
    { "label", 'l', "KEY=VALUE", "add or change a label; may be repeated", OPTION_CALL(set_label) },
    { "remove-label", 0, "KEY", "remove a label; may be repeated", OPTION_CALL(set_removed_label) },
    { "memory", 'm', "SIZE", "memory limit: 512M, 2G",
      OPTION_SIZE(struct update_options, request.memory_bytes, 1, "a size like 512M") },
    { "cpus", 0, "NUMBER", "CPU limit: 1.5",
      OPTION_CPUS(struct update_options, request.cpu_millis, 1, "a number like 1.5") },
    { "pids", 0, "NUMBER", "limit of processes and threads",
      OPTION_U32(struct update_options, request.pids, 1, "a number like 256") },
    { "files", 0, "NUMBER", "limit of descriptors of one process",
      OPTION_U32(struct update_options, request.files, 1, "a number like 4096") },
    { "quota", 0, "SIZE", "limit of its files and snapshots: 2G",
      OPTION_SIZE(struct update_options, request.quota_bytes, 1, "a size like 2G") },
    { "ttl", 0, "TIME[:ACTION]", "kill, pause, stop or deep-pause it after this time; 0: never",
      OPTION_CALL(set_ttl) },
    { "idle-timeout", 0, "TIME[:ACTION]", "the same when unused for this time; 0: never",
      OPTION_CALL(set_idle_timeout) },
    { "max-snapshots", 0, "NUMBER", "the number of turns to keep; 0: all",
      OPTION_CALL(set_max_snapshots) },
    { "volume", 'v', "NAME:PATH[:ro]", "replace the volumes of a stopped sandbox; may be repeated",
      OPTION_CALL(set_volume) },
    { "no-volumes", 0, NULL, "remove all volumes of a stopped sandbox",
      OPTION_FLAG(struct update_options, request.sets_volumes) },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &option_table_output };

static int update_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(
        options_done) struct update_options options = { .request = HOLT_INIT(holt_update_options) };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_update, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_update, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.request.labels = (const char *const *)options.labels.items;
    options.request.remove_labels = (const char *const *)options.removed_labels.items;
    options.request.volumes = (const char *const *)options.volumes.items;
    if (holt_sandbox_update(connection.holt, argv[next], &options.request, HOLT_NO_DEADLINE,
                            &sandbox, &error) < 0)
        return report_holt_error(&error);
    return output_id(&options.output, sandbox, "sandbox", sandbox->id);
}

const struct command command_update = {
    .group = "Sandboxes",
    .name = "update",
    .operands = "ID",
    .summary = "Change the name, labels, limits, times or volumes of a sandbox",
    .example = "holt update work --memory 2G --ttl 8h:stop --label team=red",
    .options = &table,
    .run = update_run,
};
