// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/when.h"
#include "cli/options/words.h"
#include "holt.h"

struct events_options {
    struct output_options output;
    bool is_following;
    bool has_since;
    uint64_t since;    /* the number of an event */
    uint64_t since_ms; /* a time; 0: none */
    const char *sandbox;
    struct words types;
    int status; /* after a report: an event could not be printed */
};

static void options_done(struct events_options *options)
{
    words_done(&options->types);
}

static int set_since(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;

    options->since_ms = 0;
    options->has_since = parse_u64(value, &options->since) == 0;
    if (options->has_since || when_parse(value, &options->since_ms) == 0)
        return 0;
    return err_set(err, ERR_INVALID,
                   "--since '%.100s' is not the number of an event, a time like 10m, or a "
                   "moment like 2026-01-31T12:00:00Z",
                   value);
}

static int set_type(void *into, const char *value, struct err *err)
{
    struct events_options *options = into;

    (void)err;
    words_add(&options->types, value);
    return 0;
}

static const struct option_row rows[] = {
    { "follow", 'f', NULL, "continue with new events",
      OPTION_FLAG(struct events_options, is_following) },
    { "since", 0, "WHEN", "start after event N, or at a time: 10m, 2026-01-31T12:00:00Z",
      OPTION_CALL(set_since) },
    { "sandbox", 0, "ID", "only events of this sandbox",
      OPTION_TEXT(struct events_options, sandbox) },
    { "type", 0, "GLOB", "only events of this type, like 'sandbox.*'; may be repeated",
      OPTION_CALL(set_type) },
    { "output", 'o', "FORMAT", "'table' (the default) or 'json', one object per line",
      OPTION_CALL(option_set_output) },
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Prints "SEQ  TIME  TYPE  SANDBOX  KEY=VALUE ...". */
static void print_event(const struct holt_event *event)
{
    cleanup_json json_t *fields = json_loads(event->fields, 0, NULL);
    char time[TIME_TEXT_SIZE];

    format_time_ms((uint64_t)event->time_ms, time);
    (void)printf("%" PRIu64 "  %s  ", event->seq, time);
    print_word(event->type);
    (void)printf("  ");
    print_word(*event->sandbox_name ? event->sandbox_name
               : *event->sandbox_id ? event->sandbox_id
                                    : "-");
    print_members(fields);
    (void)printf("\n");
}

/* Prints the event on one line, or the whole message if events were lost. */
static void print_event_json(const struct holt_event *event)
{
    size_t len;
    const char *text = output_json_find(event, "event", &len);

    if (!text)
        text = output_json_find(event, NULL, &len);
    output_json_line(text, len);
}

static int event_take(void *context, const struct holt_event *event)
{
    struct events_options *options = context;

    if (options->output.wants_json)
        print_event_json(event);
    else if (*event->type)
        print_event(event);
    else
        (void)printf("-  %" PRIu64 " older events were dropped\n", event->lost);
    if (options->status == STATUS_OK)
        options->status = command_printed();
    return options->status;
}

static int events_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(options_done) struct events_options options = { .status = STATUS_OK };
    struct holt_event_options request = HOLT_INIT(holt_event_options);
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_events, &options, argc, argv, &connection, &status))
        return status;
    request.ends = !options.is_following;
    request.has_since = options.has_since || (request.ends && options.since_ms == 0);
    request.since = options.since;
    request.since_ms = (int64_t)options.since_ms;
    request.sandbox = options.sandbox;
    request.types = (const char *const *)options.types.items;
    request.on_event = event_take;
    request.context = &options;
    if (holt_event_watch(connection.holt, &request, HOLT_NO_DEADLINE, &error) < 0)
        return options.status != STATUS_OK ? options.status : report_holt_error(&error);
    return STATUS_OK;
}

const struct command command_events = {
    .group = "Host",
    .name = "events",
    .operands = "",
    .summary = "Show past and new events",
    .example = "holt events -f --type 'process.*' -o json | jq .fields.outcome",
    .options = &table,
    .run = events_run,
};
