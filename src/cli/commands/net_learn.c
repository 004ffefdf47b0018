// SPDX-License-Identifier: Apache-2.0
/* holt net learn: runs a command with an open network, and prints the rules that it needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "cli/run/options.h"
#include "cli/run/run.h"
#include "holt.h"

enum {
    SILENCE_MAX = 3, /* messages to wait for, so that the last connection is logged */
    RESTORATION_LOOK_MS = 20,
};

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

/* Adds a line of the file, unless it is there. Takes the text. */
static void line_add(struct words *lines, char *text)
{
    cleanup_free char *line = text;

    for (size_t i = 0; i < lines->count; i++) {
        if (strcmp(lines->items[i], line) == 0)
            return;
    }
    words_add(lines, line);
}

/* Returns the narrowest rule for a host that allows a connection. */
static char *rule_for(const char *host, const struct holt_connection *connection)
{
    const bool is_tls = strcmp(connection->protocol, "tls") == 0;
    const bool is_http = strcmp(connection->protocol, "http") == 0;
    const char *scheme = is_tls ? "https://" : is_http ? "http://" : "tcp://";
    const bool is_v6 = strchr(host, ':') != NULL;
    cleanup_free char *bracketed = is_v6 ? xasprintf("[%s]", host) : xstrdup(host);

    if (!*connection->name) /* also TLS, which then is without a name */
        return xasprintf("allow %s:%" PRIu32, bracketed, connection->port);
    if ((is_tls && connection->port == 443) || (is_http && connection->port == 80))
        return xasprintf("allow %s%s", scheme, bracketed);
    return xasprintf("allow %s%s:%" PRIu32, scheme, bracketed, connection->port);
}

/* Adds the rules that allow a connection. A rule for a name never allows an address that is not
 * public, so such an address that was reached gets a rule of its own. */
static void connection_learn(struct words *lines, const struct holt_connection *connection)
{
    const char *address = connection->address;
    bool has_name = *connection->name && strcmp(connection->name, address) != 0;

    if (has_name)
        line_add(lines, rule_for(connection->name, connection));
    if (connection->is_special_address && connection->bytes_out + connection->bytes_in > 0) {
        cleanup_free char *rule = rule_for(address, connection);

        line_add(lines, xasprintf("# not a public address\n%s", rule));
    } else if (!has_name) {
        line_add(lines, rule_for(address, connection));
    }
}

/* A thread with a connection of its own collects the rules while the command runs. */
struct lesson {
    const char *sandbox;
    struct words lines; /* of a --net-file */

    struct lock lock; /* over everything below */
    struct cond changed;
    bool is_open;     /* the network */
    bool is_over;     /* the command */
    bool has_ended;   /* the thread */
    unsigned silence; /* messages without a connection since the command is over */
    bool has_failed;
    struct holt_error error;
};

/* Ends when the connections of a command that is over have been logged. */
static int connections_take(void *context, const struct holt_connection_list *list)
{
    struct lesson *lesson = context;

    for (size_t i = 0; i < list->count; i++) {
        const struct holt_connection *connection = list->items[i];

        if (connection->is_allowed && strcmp(connection->protocol, "dns") != 0)
            connection_learn(&lesson->lines, connection);
    }
    lock_scope(&lesson->lock);
    lesson->is_open = true;
    lesson->silence = list->count > 0 || !lesson->is_over ? 0 : lesson->silence + 1;
    cond_broadcast(&lesson->changed);
    return lesson->silence >= SILENCE_MAX;
}

static void lesson_main(void *context)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct lesson *lesson = context;
    struct holt_error error;
    int r = connection_open(&connection);
    bool is_silent = r < 0; /* connection_open has reported it */

    if (r == 0)
        r = holt_network_learn(connection.holt, lesson->sandbox, connections_take, lesson,
                               HOLT_NO_DEADLINE, &error);
    lock_scope(&lesson->lock);
    lesson->has_failed = is_silent || (r < 0 && lesson->silence < SILENCE_MAX);
    if (lesson->has_failed && !is_silent)
        lesson->error = error;
    lesson->has_ended = true;
    cond_broadcast(&lesson->changed);
}

/* Returns whether the network is open. */
static bool lesson_begin(struct lesson *lesson, struct thread *thread)
{
    bool is_open;

    if (thread_start(thread, "holt-learn", lesson_main, lesson) < 0)
        return false;
    lock_take(&lesson->lock);
    while (!lesson->is_open && !lesson->has_ended)
        cond_wait(&lesson->changed, &lesson->lock);
    is_open = lesson->is_open && !lesson->has_ended;
    lock_release(&lesson->lock);
    return is_open;
}

static void lesson_end(struct lesson *lesson, struct thread *thread)
{
    lock_take(&lesson->lock);
    lesson->is_over = true;
    lock_release(&lesson->lock);
    thread_join(thread);
}

/* The daemon notices the end of the stream with its next message; the policy is that of before when
 * the command returns. */
static int restoration_await(const char *sandbox)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    for (;;) {
        cleanup_result struct holt_network *network = NULL;

        if (holt_network_get(connection.holt, sandbox, HOLT_NO_DEADLINE, &network, &error) < 0)
            return report_holt_error(&error);
        if (!network->is_learning)
            return STATUS_OK;
        clock_sleep_ms(RESTORATION_LOOK_MS);
    }
}

static void lesson_done(struct lesson *lesson)
{
    words_done(&lesson->lines);
    cond_destroy(&lesson->changed);
    lock_destroy(&lesson->lock);
}

static void file_close(FILE **file)
{
    if (*file && *file != stdout)
        (void)fclose(*file);
}

static int rules_write(const struct words *lines, const char *path)
{
    cleanup_with(file_close) FILE *file = path ? fopen(path, "we") : stdout;

    if (!file)
        return report("net learn: cannot write '%s': %s", path, strerror(errno));
    (void)fprintf(file, "mode allow\n");
    for (size_t i = 0; i < lines->count; i++)
        (void)fprintf(file, "%s\n", lines->items[i]);
    if (fflush(file) != 0 || ferror(file))
        return report("net learn: cannot write the rules: %s", strerror(errno));
    return STATUS_OK;
}

static bool names_special(const struct words *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i][0] == '#')
            return true;
    return false;
}

static int learn(const char *sandbox, struct learn_options *options, char **args)
{
    const struct run_request request = {
        .command = &command_net_learn, .options = &options->run, .sandbox = sandbox, .args = args
    };
    cleanup_with(lesson_done) struct lesson lesson = { .sandbox = sandbox };
    struct thread thread = { 0 };
    int status = STATUS_HOLT;

    lock_init(&lesson.lock, LOCK_LESSON);
    cond_init(&lesson.changed);
    if (lesson_begin(&lesson, &thread))
        status = run_follow(&request);
    lesson_end(&lesson, &thread);
    if (lesson.has_failed)
        return lesson.error.code[0] ? report_holt_error(&lesson.error) : STATUS_HOLT;
    if (restoration_await(sandbox) != STATUS_OK ||
        rules_write(&lesson.lines, options->file) != STATUS_OK)
        return STATUS_HOLT;
    if (names_special(&lesson.lines))
        report_note("net learn: the rules name addresses that are not public");
    return status;
}

static int net_learn_run(int argc, char **argv)
{
    cleanup_with(learn_options_done) struct learn_options options = { .file = NULL };
    struct command_words words;
    int status;

    if (!command_parse_with_id(&command_net_learn, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_net_learn, "needs an ID and a COMMAND");
    return learn(argv[words.id], &options, argv + words.command);
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
