// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct events_options {
    struct output_options output;
    bool is_following;
    json_t *request;
};

static void options_done(struct events_options *options)
{
    json_decref(options->request);
}

static int set_follow(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;

    (void)value, (void)err;
    options->is_following = true;
    return 0;
}

static int set_text(json_t *request, const char *name, const char *value, struct err *err)
{
    if (json_object_set_new(request, name, json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not UTF-8", value);
    return 0;
}

/* "10m" is ten minutes ago. */
static int set_ago(json_t *request, uint64_t ms)
{
    uint64_t now_ms = clock_wall_ms();

    return json_object_set_new(request, "sinceTime", json_time(ms < now_ms ? now_ms - ms : 0));
}

static int set_since(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;
    json_t *request = options->request;
    uint64_t number;

    if (parse_u64(value, &number) == 0)
        return json_object_set_new(request, "since", json_u64(number));
    if (strchr(value, 'T'))
        return set_text(request, "sinceTime", value, err);
    if (parse_duration_ms(value, &number) == 0)
        return set_ago(request, number);
    return err_set(err, ERR_INVALID,
                   "--since '%.100s' is not the number of an event, a time like 10m, or a moment "
                   "like 2026-01-31T12:00:00Z",
                   value);
}

static int set_sandbox(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;

    return set_text(options->request, "sandboxId", value, err);
}

static int set_type(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;
    json_t *list = json_object_get(options->request, "types");

    if (!list) {
        list = json_array();
        (void)json_object_set_new(options->request, "types", list);
    }
    if (json_array_append_new(list, json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "--type is not UTF-8");
    return 0;
}

static const struct option_row rows[] = {
    { "follow", 'f', NULL, "go on with what happens from now on", set_follow },
    { "since", 0, "WHEN", "begin behind event N, or at a time: 10m, 2026-01-31T12:00:00Z",
      set_since },
    { "sandbox", 0, "ID", "only what is about this one", set_sandbox },
    { "type", 0, "GLOB", "only those of this type, like 'sandbox.*'; may be repeated", set_type },
    { "output", 'o', "FORMAT", "'table' (the default) or 'json', one object a line",
      option_set_output },
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void print_word(const char *text)
{
    for (; *text; text++)
        (void)putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void print_fields(json_t *fields)
{
    const char *name;
    json_t *value;

    json_object_foreach(fields, name, value)
    {
        cleanup_free char *text = NULL;

        (void)printf("  ");
        print_word(name);
        (void)printf("=");
        if (!json_is_string(value))
            text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        print_word(json_is_string(value) ? json_string_value(value) : text ? text : "?");
    }
}

/* "SEQ  TIME  TYPE  SANDBOX  KEY=VALUE ...". */
static void print_event(const json_t *event)
{
    const char *id = call_text(event, "sandboxId"), *name = call_text(event, "sandboxName");

    print_word(call_text(event, "seq"));
    (void)printf("  ");
    print_word(call_text(event, "time"));
    (void)printf("  ");
    print_word(call_text(event, "type"));
    (void)printf("  ");
    print_word(*name ? name : *id ? id : "-");
    print_fields(json_object_get(event, "fields"));
    (void)printf("\n");
}

static int handle_message(const json_t *message, void *context)
{
    const struct events_options *options = context;
    json_t *event = json_object_get(message, "event");
    const char *lost = call_text(message, "lost");

    if (!event && !*lost) /* a heartbeat */
        return STATUS_OK;
    if (options->output.wants_json) {
        cleanup_free char *line = json_dumps(event ? event : message, JSON_COMPACT);

        (void)printf("%s\n", line ? line : "{}");
    } else if (event) {
        print_event(event);
    } else {
        (void)printf("-  %s events are not remembered any more\n", lost);
    }
    return command_printed();
}

static int events_run(int argc, char **argv)
{
    cleanup_with(options_done) struct events_options options = { .request = json_object() };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_events, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_events, "takes no arguments");
    if (!options.is_following) {
        (void)json_object_set_new(options.request, "noFollow", json_true());
        if (!json_object_get(options.request, "since") &&
            !json_object_get(options.request, "sinceTime"))
            (void)json_object_set_new(options.request, "since", json_u64(0));
    }
    status = call_stream("holt.v1.EventService/Watch", json_incref(options.request), handle_message,
                         &options, &error);
    return status < 0 ? report_holt_error(&error) : status;
}

const struct command command_events = {
    .group = "Host",
    .name = "events",
    .operands = "",
    .summary = "Show what has happened, and what happens",
    .example = "holt events -f --type 'process.*' -o json | jq .fields.outcome",
    .options = &table,
    .run = events_run,
};
