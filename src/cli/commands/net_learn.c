// SPDX-License-Identifier: Apache-2.0
/* holt net learn: runs a command with an open network, and prints the rules that it needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/words.h"
#include "cli/run/options.h"
#include "cli/run/run.h"
#include "holt.h"

enum { LOG_WAIT_MS = 500 }; /* for the last connection to be logged */

struct learn_options {
    struct run_options run;
    const char *file; /* NULL: standard output */
};

static void learn_options_done(struct learn_options *options)
{
    run_options_done(&options->run);
}

static const struct option_row rows[] = {
    { "write", 0, "FILE", "write the rules to a file, for --net-file",
      OPTION_TEXT(struct learn_options, file) },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

static const struct holt_network_layer *own_layer(const struct holt_network *network)
{
    for (size_t i = 0; i < network->layer_count; i++) {
        if (strcmp(network->layers[i]->source, "sandbox") == 0)
            return network->layers[i];
    }
    return NULL;
}

/* Gives the sandbox its own rules with this mode. */
static int mode_set(struct holt *holt, const char *sandbox, const struct holt_network_layer *layer,
                    const char *mode, struct holt_error *error)
{
    struct holt_network_options request = HOLT_INIT(holt_network_options);
    struct words allow = { 0 }, deny = { 0 };
    int r;

    for (size_t i = 0; layer && i < layer->allow_count; i++)
        words_add(&allow, layer->allow[i]);
    for (size_t i = 0; layer && i < layer->deny_count; i++)
        words_add(&deny, layer->deny[i]);
    request.mode = mode;
    if (strcmp(mode, "none") != 0) {
        request.allow = (const char *const *)allow.items;
        request.deny = (const char *const *)deny.items;
    }
    r = holt_network_set(holt, sandbox, &request, HOLT_NO_DEADLINE, NULL, error);
    words_done(&allow);
    words_done(&deny);
    return r;
}

static void rule_add(struct words *rules, const char *rule)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->items[i], rule) == 0)
            return;
    }
    words_add(rules, rule);
}

/* The narrowest rule that allows a connection. In mode open the bytes are not looked at, so on the
 * ports of the web they are taken for those of the web. */
static char *rule_of(const struct holt_connection *connection)
{
    const bool is_seen = strcmp(connection->protocol, "tcp") != 0;
    const bool is_tls =
        is_seen ? strcmp(connection->protocol, "tls") == 0 : connection->port == 443;
    const bool is_http =
        is_seen ? strcmp(connection->protocol, "http") == 0 : connection->port == 80;
    const char *scheme = is_tls ? "https://" : is_http ? "http://" : "tcp://";

    if (!*connection->name && strchr(connection->address, ':'))
        return xasprintf("[%s]:%" PRIu32, connection->address, connection->port);
    if (!*connection->name)
        return xasprintf("%s:%" PRIu32, connection->address, connection->port);
    if ((is_tls && connection->port == 443) || (is_http && connection->port == 80))
        return xasprintf("%s%s", scheme, connection->name);
    return xasprintf("%s%s:%" PRIu32, scheme, connection->name, connection->port);
}

/* Reads the lines behind *after, and adds the rules for what was allowed (NULL: none). */
static int log_read(struct holt *holt, const char *sandbox, uint64_t *after, struct words *rules,
                    struct holt_error *error)
{
    struct holt_network_log_options request = HOLT_INIT(holt_network_log_options);

    for (;;) {
        cleanup_result struct holt_connection_list *list = NULL;

        request.after = *after;
        request.wait_ms = rules ? LOG_WAIT_MS : 0;
        if (holt_network_log(holt, sandbox, &request, HOLT_NO_DEADLINE, &list, error) < 0)
            return -1;
        for (size_t i = 0; i < list->count; i++) {
            const struct holt_connection *connection = list->items[i];

            *after = connection->number;
            if (rules && connection->is_allowed && strcmp(connection->protocol, "dns") != 0) {
                cleanup_free char *rule = rule_of(connection);

                rule_add(rules, rule);
            }
        }
        if (list->count == 0)
            return 0;
    }
}

static void file_close(FILE **file)
{
    if (*file && *file != stdout)
        (void)fclose(*file);
}

static int rules_write(const struct words *rules, const char *path)
{
    cleanup_with(file_close) FILE *file = path ? fopen(path, "we") : stdout;

    if (!file)
        return report("net learn: cannot write '%s': %s", path, strerror(errno));
    (void)fprintf(file, "mode allow\n");
    for (size_t i = 0; i < rules->count; i++)
        (void)fprintf(file, "allow %s\n", rules->items[i]);
    if (fflush(file) != 0 || ferror(file))
        return report("net learn: cannot write the rules: %s", strerror(errno));
    return STATUS_OK;
}

static int learn(struct holt *holt, const char *sandbox, struct learn_options *options, char **args)
{
    const struct run_request request = {
        .command = &command_net_learn, .options = &options->run, .sandbox = sandbox, .args = args
    };
    cleanup_with(words_done) struct words rules = { 0 };
    cleanup_result struct holt_network *before = NULL;
    const struct holt_network_layer *layer;
    struct holt_error error;
    uint64_t after = 0;
    int status, r;

    if (holt_network_get(holt, sandbox, HOLT_NO_DEADLINE, &before, &error) < 0)
        return report_holt_error(&error);
    layer = own_layer(before);
    if (log_read(holt, sandbox, &after, NULL, &error) < 0 ||
        mode_set(holt, sandbox, layer, "open", &error) < 0)
        return report_holt_error(&error);
    status = run_follow(&request);
    r = log_read(holt, sandbox, &after, &rules, &error);
    if (r < 0)
        (void)report_holt_error(&error);
    if (mode_set(holt, sandbox, layer, layer ? layer->mode : "none", &error) < 0)
        return report_holt_error(&error);
    if (r < 0)
        return STATUS_HOLT;
    r = rules_write(&rules, options->file);
    return status == STATUS_OK ? r : status;
}

static int net_learn_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(learn_options_done) struct learn_options options = { .file = NULL };
    struct command_words words;
    int status;

    if (!command_parse_with_id(&command_net_learn, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_net_learn, "needs an ID and a COMMAND");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return learn(connection.holt, argv[words.id], &options, argv + words.command);
}

const struct command command_net_learn = {
    .group = "Network",
    .name = "net learn",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Run a command with an open network, and print the rules that it needs",
    .example = "holt net learn work -- npm install",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = net_learn_run,
};
