// SPDX-License-Identifier: Apache-2.0
/* The commands for the network of a sandbox: its policy, and what it has reached; and for that of a
 * template. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/network_options.h"
#include "holt.h"

/* --- the policy ------------------------------------------------------------------------------- */

static void rules_print(const char *word, const char *const *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)printf("%s ", word);
        print_word(rules[i]);
        (void)printf("\n");
    }
}

/* Prints the layers; that of the sandbox or template, which is the last, as lines that --net-file
 * reads, the others as comments. */
static int network_print(const struct output_options *options, const struct holt_network *network)
{
    if (options->wants_json)
        return output_json(network, "network");
    if (options->is_quiet) {
        (void)printf("%s\n", network->mode);
        return command_printed();
    }
    if (network->layer_count == 0)
        (void)printf("# mode %s: nothing is set\n", network->mode);
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct holt_network_layer *layer = network->layers[i];
        bool is_own = i + 1 == network->layer_count;

        if (!is_own)
            (void)printf("# %s: mode %s\n", layer->source, layer->mode);
        else
            (void)printf("mode %s\n", layer->mode);
        rules_print(is_own ? "allow" : "# allow", layer->allow, layer->allow_count);
        rules_print(is_own ? "deny" : "# deny", layer->deny, layer->deny_count);
        rules_print(is_own ? "model" : "# model", layer->models, layer->model_count);
        if (layer->is_allow_first)
            (void)printf("# allow wins over deny\n");
        if (layer->proxy && *layer->proxy) /* a comment: without its login it may be another one */
            (void)printf("# proxy %s\n", layer->proxy);
    }
    return command_printed();
}

static const struct option_row show_rows[] = {
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the mode", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table show_table = { show_rows, ARRAY_SIZE(show_rows), NULL };

static int net_show_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_network *network = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_net_show, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_net_show, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_network_get(connection.holt, argv[next], HOLT_NO_DEADLINE, &network, &error) < 0)
        return report_holt_error(&error);
    return network_print(&options, network);
}

struct set_options {
    struct output_options output;
    struct network_options network;
    bool is_removing; /* rules of net allow and net deny, the policy of template net */
};

static void set_options_done(struct set_options *options)
{
    network_options_done(&options->network);
}

static int set_net(void *into, const char *value, struct err *err)
{
    return network_set_mode(&((struct set_options *)into)->network, value, err);
}

static int set_allow(void *into, const char *value, struct err *err)
{
    return network_add_allow(&((struct set_options *)into)->network, value, err);
}

static int set_deny(void *into, const char *value, struct err *err)
{
    return network_add_deny(&((struct set_options *)into)->network, value, err);
}

static int set_net_file(void *into, const char *value, struct err *err)
{
    return network_add_file(&((struct set_options *)into)->network, value, err);
}

static const struct option_row set_rows[] = {
    { "net", 0, "MODE", "none, open or allow; allow if there are only rules",
      OPTION_CALL(set_net) },
    { "allow", 0, "RULE", "what it may reach: registry.example.com; may be repeated",
      OPTION_CALL(set_allow) },
    { "deny", 0, "RULE", "what it may not reach; may be repeated", OPTION_CALL(set_deny) },
    { "net-file", 0, "FILE",
      "a file with lines 'mode MODE', 'allow RULE', 'deny RULE', 'proxy URL'",
      OPTION_CALL(set_net_file) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the mode", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table set_table = { set_rows, ARRAY_SIZE(set_rows), NULL };

static const struct option_row template_rows[] = {
    { "clear", 0, NULL, "remove the policy of the template",
      OPTION_FLAG(struct set_options, is_removing) },
};

static const struct option_table template_table = { template_rows, ARRAY_SIZE(template_rows),
                                                    &set_table };

static int network_change(const char *sandbox, const struct holt_network_options *request,
                          const struct output_options *output)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_network *network = NULL;
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_network_set(connection.holt, sandbox, request, HOLT_NO_DEADLINE, &network, &error) < 0)
        return report_holt_error(&error);
    return network_print(output, network);
}

static int net_set_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(set_options_done) struct set_options options = { .is_removing = false };
    struct holt_network_options request = HOLT_INIT(holt_network_options);
    int next, status;
    bool has_rules;

    if (!command_parse(&command_net_set, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_net_set, &operands, argc - next))
        return STATUS_HOLT;
    has_rules = options.network.mode || options.network.allow.count || options.network.deny.count;
    if (!has_rules && !options.network.proxy)
        return command_misused(&command_net_set, "needs a policy, such as --net open");
    if (has_rules)
        request.mode = options.network.mode ? options.network.mode : "allow";
    request.proxy = options.network.proxy;
    request.allow = (const char *const *)options.network.allow.items;
    request.deny = (const char *const *)options.network.deny.items;
    return network_change(argv[next], &request, &options.output);
}

static int template_net_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a TEMPLATE" };
    cleanup_with(set_options_done) struct set_options options = { .is_removing = false };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_network *network = NULL;
    const struct holt_network_rules *rules;
    struct holt_network_rules room;
    struct holt_error error;
    int next, status, r;

    if (!command_parse(&command_template_net, &options, argc, argv, &next, &status))
        return status;
    rules = network_rules(&options.network, &room);
    if (rules && options.is_removing)
        return command_misused(&command_template_net, "takes a policy or --clear");
    if (options.network.proxy)
        return command_misused(&command_template_net, "takes no proxy; sandboxes do");
    if (!command_has_operands(&command_template_net, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (rules || options.is_removing)
        r = holt_network_set_template(connection.holt, argv[next], rules, HOLT_NO_DEADLINE,
                                      &network, &error);
    else
        r = holt_network_get_template(connection.holt, argv[next], HOLT_NO_DEADLINE, &network,
                                      &error);
    return r < 0 ? report_holt_error(&error) : network_print(&options.output, network);
}

static const struct option_row change_rows[] = {
    { "remove", 0, NULL, "remove the rules", OPTION_FLAG(struct set_options, is_removing) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the mode", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table change_table = { change_rows, ARRAY_SIZE(change_rows), NULL };

static int change_run(const struct command *command, bool is_deny, int argc, char **argv)
{
    static const struct operands operands = { 2, 1 << 20, "an ID and rules" };
    struct holt_network_options request = HOLT_INIT(holt_network_options);
    struct set_options options = { .is_removing = false };
    const char *const *rules;
    int next, status;

    if (!command_parse(command, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(command, &operands, argc - next))
        return STATUS_HOLT;
    rules = (const char *const *)argv + next + 1; /* argv ends with NULL */
    if (options.is_removing)
        request.remove = rules;
    else if (is_deny)
        request.deny = rules;
    else
        request.allow = rules;
    return network_change(argv[next], &request, &options.output);
}

static int net_allow_run(int argc, char **argv)
{
    return change_run(&command_net_allow, false, argc, argv);
}

static int net_deny_run(int argc, char **argv)
{
    return change_run(&command_net_deny, true, argc, argv);
}

/* --- the log ---------------------------------------------------------------------------------- */

enum { LOG_WAIT_MS = 20000 };

struct log_options {
    struct output_options output;
    bool is_following;
    bool is_denied_only;
};

static const struct option_row log_rows[] = {
    { "follow", 'f', NULL, "continue with new connections",
      OPTION_FLAG(struct log_options, is_following) },
    { "denied", 0, NULL, "only what was denied", OPTION_FLAG(struct log_options, is_denied_only) },
    { "output", 'o', "FORMAT", "'table' (the default) or 'json', one object per line",
      OPTION_CALL(option_set_output) },
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table log_table = { log_rows, ARRAY_SIZE(log_rows), NULL };

/* Prints "TIME  denied  tls  NAME ADDRESS:PORT  RULE  END  OUT IN  MS". */
static void connection_print(const struct holt_connection *connection)
{
    const char *name = *connection->name ? connection->name : "-";
    char time[TIME_TEXT_SIZE];

    format_time_ms((uint64_t)connection->time_ms, time);
    (void)printf("%s  %-7s  %-4s  ", time, connection->is_allowed ? "allowed" : "denied",
                 connection->protocol);
    print_word(name);
    if (*connection->address)
        (void)printf(strchr(connection->address, ':') ? " [%s]:%" PRIu32 : " %s:%" PRIu32,
                     connection->address, connection->port);
    (void)printf("  ");
    print_word(connection->rule);
    (void)printf("  ");
    print_word(*connection->end ? connection->end : "-");
    (void)printf("  out=%" PRIu64 " in=%" PRIu64 " ms=%" PRIu64 "\n", connection->bytes_out,
                 connection->bytes_in, connection->duration_ms);
}

static int connections_print_json(const struct holt_connection_list *list,
                                  const struct log_options *options)
{
    for (size_t i = 0; i < list->count; i++) {
        size_t len;
        const char *line = output_json_item(list, "connections", i, &len);

        if (line && (!options->is_denied_only || !list->items[i]->is_allowed))
            output_json_line(line, len);
    }
    return command_printed();
}

static int connections_print(const struct holt_connection_list *list,
                             const struct log_options *options)
{
    if (options->output.wants_json)
        return connections_print_json(list, options);
    for (size_t i = 0; i < list->count; i++) {
        if (!options->is_denied_only || !list->items[i]->is_allowed)
            connection_print(list->items[i]);
    }
    return command_printed();
}

static int net_log_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_network_log_options request = HOLT_INIT(holt_network_log_options);
    struct log_options options = { .is_following = false };
    int next, status;

    if (!command_parse(&command_net_log, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_net_log, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    do {
        cleanup_result struct holt_connection_list *list = NULL;
        struct holt_error error;

        if (holt_network_log(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &list,
                             &error) < 0)
            return report_holt_error(&error);
        status = connections_print(list, &options);
        if (list->count > 0)
            request.after = list->items[list->count - 1]->number;
        request.wait_ms = LOG_WAIT_MS;
    } while (status == STATUS_OK && options.is_following);
    return status;
}

/* --- a question ------------------------------------------------------------------------------- */

struct test_options {
    struct output_options output;
    struct holt_network_target target;
};

static const struct option_row test_rows[] = {
    { "address", 0, "ADDR", "what the name is taken to resolve to; default: a public address",
      OPTION_TEXT(struct test_options, target.address) },
    { "method", 0, "METHOD", "of an http:// target; default: GET",
      OPTION_TEXT(struct test_options, target.method) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print nothing", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table test_table = { test_rows, ARRAY_SIZE(test_rows), NULL };

static int net_test_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a TARGET" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct test_options options = { .target = HOLT_INIT(holt_network_target) };
    cleanup_result struct holt_network_verdict *verdict = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_net_test, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_net_test, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.target.target = argv[next + 1];
    if (holt_network_test(connection.holt, argv[next], &options.target, HOLT_NO_DEADLINE, &verdict,
                          &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json) {
        status = output_json(verdict, NULL);
    } else {
        if (!options.output.is_quiet)
            (void)printf("%s: %s\n", verdict->is_allowed ? "allowed" : "denied", verdict->rule);
        status = command_printed();
    }
    return status == STATUS_OK && !verdict->is_allowed ? 1 : status;
}

const struct command command_net_show = {
    .group = "Network",
    .name = "net show",
    .operands = "ID",
    .summary = "Show what a sandbox may reach",
    .options = &show_table,
    .run = net_show_run,
};

const struct command command_net_set = {
    .group = "Network",
    .name = "net set",
    .operands = "ID",
    .summary = "Replace the network policy of a sandbox",
    .example = "holt net set work --net allow --allow '*.example.com' --deny bad.example.com",
    .options = &set_table,
    .run = net_set_run,
};

const struct command command_template_net = {
    .group = "Templates",
    .name = "template net",
    .operands = "TEMPLATE",
    .summary = "Show or set what sandboxes of a template may reach",
    .example = "holt template net base --allow registry.example.com",
    .options = &template_table,
    .run = template_net_run,
};

const struct command command_net_allow = {
    .group = "Network",
    .name = "net allow",
    .operands = "ID RULE...",
    .summary = "Allow a sandbox to reach more",
    .options = &change_table,
    .run = net_allow_run,
};

const struct command command_net_deny = {
    .group = "Network",
    .name = "net deny",
    .operands = "ID RULE...",
    .summary = "Forbid a sandbox to reach something",
    .options = &change_table,
    .run = net_deny_run,
};

const struct command command_net_log = {
    .group = "Network",
    .name = "net log",
    .operands = "ID",
    .summary = "Show the connections of a sandbox, and what was denied",
    .options = &log_table,
    .run = net_log_run,
};

const struct command command_net_test = {
    .group = "Network",
    .name = "net test",
    .operands = "ID TARGET",
    .summary = "Tell whether a sandbox may reach something, and by which rule",
    .example = "holt net test work https://registry.example.com",
    .options = &test_table,
    .run = net_test_run,
};
