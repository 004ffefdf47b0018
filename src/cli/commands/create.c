// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/words.h"
#include "cli/run/options.h"

struct create_options {
    struct run_options run;
    json_t *request; /* what run_options do not know */
    bool is_quiet;
};

static void options_done(struct create_options *options)
{
    run_options_done(&options->run);
    json_decref(options->request);
}

static int set_name(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (json_object_set_new(options->request, "name", json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "--name is not UTF-8");
    return 0;
}

static int set_label(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    return label_add(json_object_get(options->request, "labels"), value, err);
}

static int set_quota(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;
    uint64_t bytes;

    if (parse_size(value, &bytes) < 0 || bytes == 0)
        return err_set(err, ERR_INVALID, "--quota '%.100s' is not a size like 2G", value);
    return json_object_set_new(options->request, "quotaBytes", json_u64(bytes));
}

/* TIME, TIME:kill or TIME:pause. */
static int set_time(json_t *request, const char *value, const char *time_field,
                    const char *action_field)
{
    size_t len = strcspn(value, ":");
    cleanup_free char *time = xasprintf("%.*s", (int)len, value);
    const char *action = value[len] ? value + len + 1 : "kill";
    uint64_t ms;

    if (parse_duration_ms(time, &ms) < 0 || ms == 0 ||
        (strcmp(action, "kill") != 0 && strcmp(action, "pause") != 0 &&
         strcmp(action, "stop") != 0))
        return -EINVAL;
    (void)json_object_set_new(request, time_field, json_u64(ms));
    (void)json_object_set_new(request, action_field, json_string(action));
    return 0;
}

static int set_ttl(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (set_time(options->request, value, "ttlMs", "expireAction") < 0)
        return err_set(err, ERR_INVALID, "--ttl '%.100s' is not a time like 1h or 1h:pause", value);
    return 0;
}

static int set_idle_timeout(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (set_time(options->request, value, "idleTimeoutMs", "idleAction") < 0)
        return err_set(err, ERR_INVALID,
                       "--idle-timeout '%.100s' is not a time like 10m or 10m:pause", value);
    return 0;
}

/* A path has slashes and a name has none, so the first colon is the one between them. */
static int set_volume(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;
    size_t len = strcspn(value, ":");
    cleanup_free char *name = xasprintf("%.*s", (int)len, value);
    json_t *mount = NULL;

    if (len > 0 && value[len] && value[len + 1] == '/')
        mount = json_pack("{s:s, s:s}", "volume", name, "path", value + len + 1);
    if (!mount)
        return err_set(err, ERR_INVALID, "--volume '%.100s' is not NAME:PATH, as data:/mnt/data",
                       value);
    if (!json_object_get(options->request, "volumes"))
        (void)json_object_set_new(options->request, "volumes", json_array());
    return json_array_append_new(json_object_get(options->request, "volumes"), mount);
}

static int set_max_snapshots(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;
    uint64_t count;

    if (parse_u64(value, &count) < 0 || count == 0 || count > UINT32_MAX)
        return err_set(err, ERR_INVALID, "--max-snapshots '%.100s' is not a number like 20", value);
    return json_object_set_new(options->request, "maxSnapshots", json_integer((json_int_t)count));
}

static int set_key(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (json_object_set_new(options->request, "idempotencyKey", json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "--key is not UTF-8");
    return 0;
}

static int set_quiet(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    (void)value;
    (void)err;
    options->is_quiet = true;
    return 0;
}

static const struct option_row rows[] = {
    { "name", 0, "NAME", "a name to use in place of the id", set_name },
    { "label", 'l', "KEY=VALUE", "something to find it by; may be repeated", set_label },
    { "quota", 0, "SIZE", "most its files and snapshots may hold: 2G", set_quota },
    { "volume", 'v', "NAME:PATH", "a volume to mount at a path; may be repeated", set_volume },
    { "ttl", 0, "TIME[:ACTION]", "kill, pause or stop it when it is so old: 1h, 1h:pause",
      set_ttl },
    { "idle-timeout", 0, "TIME[:ACTION]", "kill, pause or stop it when unused for so long",
      set_idle_timeout },
    { "max-snapshots", 0, "NUMBER", "how many turns to keep", set_max_snapshots },
    { "key", 0, "KEY", "make nothing if a sandbox was made with this key already", set_key },
    { "quiet", 'q', NULL, "print only the id", set_quiet },
    OPTION_HELP,
};

static const struct option_table own_table = { rows, ARRAY_SIZE(rows), NULL };

static const struct option_table table = { run_sandbox_rows, RUN_SANDBOX_ROWS, &own_table };

static int print_created(const json_t *reply, bool is_quiet)
{
    const json_t *sandbox = call_object(reply, "sandbox");
    const char *id = call_text(sandbox, "id"), *name = call_text(sandbox, "name");

    if (!sandbox)
        return STATUS_HOLT;
    if (is_quiet)
        (void)printf("%s\n", id);
    else if (json_is_true(json_object_get(reply, "joined")))
        (void)printf("sandbox %s was made with this key already\n", id);
    else if (*name)
        (void)printf("created sandbox %s (%s)\n", id, name);
    else
        (void)printf("created sandbox %s\n", id);
    return command_printed();
}

static int create_run(int argc, char **argv)
{
    cleanup_with(options_done) struct create_options options = { .is_quiet = false };
    cleanup_json json_t *reply = NULL;
    int next, status;

    run_options_init(&options.run);
    options.request = json_pack("{s:{}}", "labels");
    if (!command_parse(&command_create, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_create, "takes no arguments");
    run_add_sandbox(options.request, &options.run);
    status = call_once("holt.v1.SandboxService/Create", json_incref(options.request), &reply);
    return status == STATUS_OK ? print_created(reply, options.is_quiet) : status;
}

const struct command command_create = {
    .group = "Sandboxes",
    .name = "create",
    .operands = "",
    .summary = "Make a sandbox that stays",
    .example = "id=$(holt create --name work --label team=red --ttl 1h -q)",
    .options = &table,
    .run = create_run,
};
