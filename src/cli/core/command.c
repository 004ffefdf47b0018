// SPDX-License-Identifier: Apache-2.0
#include "cli/core/command.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/near.h"
#include "cli/core/report.h"

int option_set_output(void *into, const char *value, struct err *err)
{
    struct output_options *options = into;

    if (strcmp(value, "json") != 0 && strcmp(value, "table") != 0)
        return err_set(err, ERR_INVALID, "--output is 'table' or 'json', not '%.100s'", value);
    if (strcmp(value, "json") == 0)
        report_in_json();
    options->wants_json = strcmp(value, "json") == 0 && !options->is_quiet;
    return 0;
}

int option_set_json(void *into, const char *value, struct err *err)
{
    (void)value;
    return option_set_output(into, "json", err);
}

int option_set_quiet(void *into, const char *value, struct err *err)
{
    struct output_options *options = into;

    (void)value;
    (void)err;
    options->is_quiet = true;
    options->wants_json = false;
    return 0;
}

static const struct option_row help_rows[] = { OPTION_HELP };

const struct option_table option_table_help = { help_rows, ARRAY_SIZE(help_rows), NULL };

static const struct option_row output_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET };

const struct option_table option_table_output = { output_rows, ARRAY_SIZE(output_rows),
                                                  &option_table_help };

static const struct option_row names_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET_NAMES };

const struct option_table option_table_output_names = { names_rows, ARRAY_SIZE(names_rows),
                                                        &option_table_help };

int command_printed(void)
{
    return fflush(stdout) == 0 ? STATUS_OK : report("cannot write to stdout");
}

bool command_is_below(const struct command *command, const char *word)
{
    size_t len = strlen(word);

    return strncmp(command->name, word, len) == 0 && command->name[len] == ' ';
}

static int print_command(const struct command *command)
{
    (void)printf("Usage: holt %s [OPTIONS]%s%s\n\n%s.\n\nOptions:\n", command->name,
                 *command->operands ? " " : "", command->operands, command->summary);
    options_help(command->options, stdout);
    if (command->example)
        (void)printf("\nExample:\n  %s\n", command->example);
    for (const struct command *const *next = commands; *next; next++)
        if (command_is_below(*next, command->name))
            (void)printf("\nSee also: holt %s --help\n", (*next)->name);
    return command_printed();
}

bool command_parse(const struct command *command, void *into, int argc, char **argv, int *ret_next,
                   int *ret_status)
{
    const struct common_options *options = into;
    struct err err;
    int r;

    if (command->takes_command)
        r = options_parse(command->options, into, argc, argv, ret_next, &err);
    else
        r = options_parse_anywhere(command->options, into, argc, argv, ret_next, &err);
    if (r < 0) {
        *ret_status =
            report_usage("%s: %s; see 'holt %s --help'", command->name, err.msg, command->name);
        return false;
    }
    if (options->wants_help)
        *ret_status = print_command(command);
    return !options->wants_help;
}

bool command_has_operands(const struct command *command, const struct operands *operands, int count)
{
    if (count >= operands->least && (operands->most == 0 || count <= operands->most))
        return true;
    (void)report_usage("%s: needs %s; see 'holt %s --help'", command->name, operands->needs,
                       command->name);
    return false;
}

bool command_parse_plain(const struct command *command, const struct operands *operands, int argc,
                         char **argv, int *ret_next, int *ret_status)
{
    struct common_options options = { .wants_help = false };

    if (!command_parse(command, &options, argc, argv, ret_next, ret_status))
        return false;
    *ret_status = STATUS_HOLT;
    return command_has_operands(command, operands, argc - *ret_next);
}

int command_misused(const struct command *command, const char *why)
{
    return report_usage("%s: %s; see 'holt %s --help'", command->name, why, command->name);
}

/* Returns the number of words that are the command's name; 0 if they name another command. */
static int words_matched(const struct command *command, int count, char *const *words)
{
    size_t first = strcspn(command->name, " ");
    const char *second = command->name + first;

    if (count < 1 || strlen(words[0]) != first || strncmp(words[0], command->name, first) != 0)
        return 0;
    if (*second == '\0')
        return 1;
    return count >= 2 && strcmp(words[1], second + 1) == 0 ? 2 : 0;
}

static bool is_first_of_group(const struct command *const *at)
{
    for (const struct command *const *next = commands; next < at; next++)
        if (strcmp((*next)->group, (*at)->group) == 0)
            return false;
    return true;
}

static void list_group(const char *group)
{
    (void)printf("\n%s:\n", group);
    for (const struct command *const *next = commands; *next; next++)
        if (strcmp((*next)->group, group) == 0)
            (void)printf("  %-17s %s\n", (*next)->name, (*next)->summary);
}

/* Prints one line per command; every group has one heading. */
static void list_all(void)
{
    (void)printf("Usage: holt COMMAND [OPTIONS] [ARGUMENTS]\n");
    for (const struct command *const *next = commands; *next; next++)
        if (is_first_of_group(next))
            list_group((*next)->group);
    (void)printf(
        "\nEnvironment:\n"
        "  HOLT_HOST        the daemon: unix:///PATH, http://HOST:PORT or https://HOST:PORT\n"
        "  HOLT_TOKEN       the token for a daemon over TCP (see 'holt token create')\n"
        "  HOLT_CACERT      a file of certificates to trust for https\n"
        "  HOLT_RUN         the directory of the daemon's socket; /run/holt by default\n");
}

/* Prints the commands whose name begins with this word. Returns false if there are none. */
static bool list_below(const char *word)
{
    bool is_found = false;

    for (const struct command *const *next = commands; *next; next++) {
        if (!command_is_below(*next, word))
            continue;
        if (!is_found)
            (void)printf("Usage: holt %s COMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n", word);
        is_found = true;
        (void)printf("  %-17s %s\n", (*next)->name, (*next)->summary);
    }
    return is_found;
}

/* Maps names of other tools to ours. */
static const struct {
    const char *word, *name;
} synonyms[] = {
    { "list", "ls" },
    { "delete", "rm" },
    { "destroy", "rm" },
    { "remove", "rm" },
    { "new", "create" },
    { "connect", "shell" },
    { "ssh", "shell" },
    { "images", "template ls" },
    { "rmi", "template rm" },
    { "templates", "template ls" },
    { "import", "template import" },
    { "commit", "template commit" },
    { "checkpoint", "snapshot" },
    { "restore", "rollback" },
    { "unpause", "resume" },
    { "freeze", "pause" },
    { "show", "inspect" },
    { "describe", "inspect" },
    { "get", "inspect" },
    { "ports", "port ls" },
    { "health", "info" },
    { "status", "info" },
};

/* Returns the most similar command name, or NULL. */
static const char *nearest_command(const char *word)
{
    const char *found = NULL;
    int least = NEAR_MAX + 1;

    for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
        if (strcmp(synonyms[i].word, word) == 0)
            return synonyms[i].name;

    for (const struct command *const *next = commands; *next; next++) {
        int distance = word_distance(word, (*next)->name);

        if (distance < least) {
            least = distance;
            found = (*next)->name;
        }
    }
    return found;
}

static int unknown(int count, char **words)
{
    bool is_pair = count >= 2 && words[1][0] != '-';
    const char *near;

    for (const struct command *const *next = commands; *next; next++)
        if (command_is_below(*next, words[0]))
            return is_pair ? report_usage("unknown command '%s %s'; see 'holt %s --help'", words[0],
                                          words[1], words[0])
                           : report_usage("'holt %s' needs a command; see 'holt %s --help'",
                                          words[0], words[0]);
    near = nearest_command(words[0]);
    return near ? report_usage("unknown command '%s' (did you mean '%s'?); see 'holt --help'",
                               words[0], near)
                : report_usage("unknown command '%s'; see 'holt --help'", words[0]);
}

const struct command *command_find(int count, char *const *words, int *ret_used)
{
    const struct command *found = NULL;

    *ret_used = 0;
    for (const struct command *const *next = commands; *next; next++) {
        int used = words_matched(*next, count, words);

        if (used <= *ret_used)
            continue;
        found = *next;
        *ret_used = used;
    }
    return found;
}

int commands_help(int count, char **words)
{
    int used = 0;
    const struct command *command = command_find(count, words, &used);

    if (command && used == count)
        return print_command(command);
    if (command)
        return report_usage("unknown command '%s %s'; see 'holt %s --help'", command->name,
                            words[used], command->name);
    if (count == 0)
        list_all();
    else if (count > 1 || !list_below(words[0]))
        return unknown(count, words);
    (void)printf("\nSee 'holt COMMAND --help' for more about a command.\n");
    return command_printed();
}

int commands_run(int count, char **words)
{
    bool is_help = count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0);
    int used;
    const struct command *command = command_find(count, words, &used);

    int status;

    if (command)
        status = command->run(count - used + 1, words + used - 1);
    else
        status = is_help ? commands_help(1, words) : unknown(count, words);
    return command && command->passes_status ? status : report_exit_status(status);
}

bool command_parse_with_id(const struct command *command, void *options, int argc, char **argv,
                           struct command_words *ret, int *ret_status)
{
    int next;

    if (!command_parse(command, options, argc, argv, &ret->id, ret_status))
        return false;
    ret->command = ret->id + 1;
    if (ret->id >= argc || strcmp(argv[ret->id - 1], "--") == 0)
        return true;
    if (!command_parse(command, options, argc - ret->id, argv + ret->id, &next, ret_status))
        return false;
    ret->command = ret->id + next;
    return true;
}
