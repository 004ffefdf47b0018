// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <string.h>

#include "base/err.h"
#include "cli/report.h"

int option_set_help(void *into, const char *value, struct err *err)
{
    struct common_options *options = into;

    (void)value;
    (void)err;
    options->wants_help = true;
    return 0;
}

/* The exit status of having printed something on stdout. */
static int printed(void)
{
    return fflush(stdout) == 0 ? STATUS_OK : report("cannot write to stdout");
}

static int print_command(const struct command *command)
{
    (void)printf("Usage: holt %s [OPTIONS]%s%s\n\n%s.\n\nOptions:\n", command->name,
                 *command->operands ? " " : "", command->operands, command->summary);
    options_help(command->options, stdout);
    return printed();
}

bool command_parse(const struct command *command, void *into, int argc, char **argv, int *ret_next,
                   int *ret_status)
{
    const struct common_options *options = into;
    struct err err;

    if (options_parse(command->options, into, argc, argv, ret_next, &err) < 0) {
        *ret_status = report("%s: %s; see 'holt %s --help'", command->name, err.msg, command->name);
        return false;
    }
    if (options->wants_help)
        *ret_status = print_command(command);
    return !options->wants_help;
}

int command_misused(const struct command *command, const char *why)
{
    return report("%s: %s; see 'holt %s --help'", command->name, why, command->name);
}

/* How many of the words are the command's name; 0 when they name another. */
static int words_matched(const struct command *command, int count, char **words)
{
    size_t first = strcspn(command->name, " ");
    const char *second = command->name + first;

    if (count < 1 || strlen(words[0]) != first || strncmp(words[0], command->name, first) != 0)
        return 0;
    if (*second == '\0')
        return 1;
    return count >= 2 && strcmp(words[1], second + 1) == 0 ? 2 : 0;
}

static bool is_in_group(const struct command *command, const char *group)
{
    size_t len = strlen(group);

    return strncmp(command->name, group, len) == 0 && command->name[len] == ' ';
}

/* One line per command; of one group only where group is not NULL. False when there is none. */
static bool list_commands(const char *group)
{
    bool is_found = false;

    for (const struct command *const *next = commands; *next; next++) {
        if (group && !is_in_group(*next, group))
            continue;
        if (!is_found)
            (void)printf("Usage: holt %s%sCOMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n",
                         group ? group : "", group ? " " : "");
        is_found = true;
        (void)printf("  %-20s %s\n", (*next)->name, (*next)->summary);
    }
    if (is_found)
        (void)printf("\n'holt COMMAND --help' tells more about one of them.\n");
    return is_found;
}

static int unknown(int count, char **words)
{
    bool is_pair = count >= 2 && words[1][0] != '-';

    for (const struct command *const *next = commands; *next; next++)
        if (is_in_group(*next, words[0]))
            return is_pair ? report("unknown command '%s %s'; see 'holt %s --help'", words[0],
                                    words[1], words[0])
                           : report("'holt %s' needs a command; see 'holt %s --help'", words[0],
                                    words[0]);
    return report("unknown command '%s'; see 'holt --help'", words[0]);
}

int commands_help(int count, char **words)
{
    for (const struct command *const *next = commands; *next; next++)
        if (count > 0 && words_matched(*next, count, words) == count)
            return print_command(*next);
    if (count <= 1 && list_commands(count == 1 ? words[0] : NULL))
        return printed();
    return unknown(count, words);
}

int commands_run(int count, char **words)
{
    bool is_help = count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0);

    for (const struct command *const *next = commands; *next; next++) {
        int used = words_matched(*next, count, words);

        if (used > 0)
            return (*next)->run(count - used + 1, words + used - 1);
    }
    return is_help ? commands_help(1, words) : unknown(count, words);
}
