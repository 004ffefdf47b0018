// SPDX-License-Identifier: Apache-2.0
#include "cli/core/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/command.h"

enum { KIND_SIZE = 32 };

/* The parser state after the words before the one to complete. */
struct place {
    const struct option_row *waiting; /* the option whose argument comes next, or NULL */
    bool is_past_options;
    int operands;        /* operands so far */
    const char *sandbox; /* the operand that is the sandbox's ID, or NULL */
};

void complete_offer(const char *start, const char *word, const char *what)
{
    if (strncmp(word, start, strlen(start)) == 0)
        (void)printf("%s\t%s\n", word, what);
}

static const struct option_row *row_find(const struct option_table *table, const char *word)
{
    bool is_long = word[1] == '-';

    for (; table; table = table->more)
        for (size_t i = 0; i < table->count; i++)
            if (is_long ? strcmp(table->rows[i].name, word + 2) == 0
                        : table->rows[i].letter == word[1] && word[2] == '\0')
                return &table->rows[i];
    return NULL;
}

/* Returns the kind of the operand with this number, "ID" in "ID [FROM [TO]]"; the last one repeats
 * if dots follow it. "" if there is none. */
static void operand_kind(const char *operands, int number, char ret[KIND_SIZE])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ|abcdefghijklmnopqrstuvwxyz";
    bool repeats = false;

    *ret = '\0';
    for (int i = 0; *operands; i++) {
        size_t len;

        operands += strcspn(operands, letters);
        len = strspn(operands, letters);
        if (len == 0)
            break;
        (void)snprintf(ret, KIND_SIZE, "%.*s", (int)len, operands);
        repeats = strncmp(operands + len, "...", 3) == 0;
        operands += len;
        if (i == number)
            return;
    }
    if (!repeats)
        *ret = '\0';
}

/* Advances the state by one word before the one to complete. */
static void place_pass(struct place *place, const struct command *command, const char *word)
{
    char kind[KIND_SIZE];

    if (place->waiting) {
        place->waiting = NULL;
    } else if (!place->is_past_options && strcmp(word, "--") == 0) {
        place->is_past_options = true;
    } else if (!place->is_past_options && word[0] == '-' && word[1] != '\0') {
        const struct option_row *row = row_find(command->options, word);

        place->waiting = row && row->argument ? row : NULL;
    } else {
        operand_kind(command->operands, place->operands++, kind);
        if (strcmp(kind, "ID") == 0)
            place->sandbox = word;
        if (command->takes_command && strcmp(kind, "COMMAND") == 0)
            place->is_past_options = true;
    }
}

static void offer_options(const struct option_table *table, const char *start)
{
    for (; table; table = table->more) {
        for (size_t i = 0; i < table->count; i++) {
            cleanup_free char *word = xasprintf("--%s", table->rows[i].name);

            complete_offer(start, word, table->rows[i].help);
        }
    }
}

static void offer_commands(const char *start)
{
    const char *before = "";

    for (const struct command *const *next = commands; *next; next++) {
        size_t len = strcspn((*next)->name, " ");
        cleanup_free char *word = xasprintf("%.*s", (int)len, (*next)->name);

        /* Commands of one group are adjacent in the list. */
        if (strncmp(before, word, len) != 0 || (before[len] != ' ' && before[len] != '\0'))
            complete_offer(start, word, (*next)->name[len] == ' ' ? "" : (*next)->summary);
        before = (*next)->name;
    }
}

static void offer_below(const char *word, const char *start)
{
    for (const struct command *const *next = commands; *next; next++)
        if (command_is_below(*next, word))
            complete_offer(start, (*next)->name + strlen(word) + 1, (*next)->summary);
}

/* Words of the kinds that need no call to the daemon. */
static const struct {
    const char *kind, *words[6];
} fixed[] = {
    { "FORMAT", { "table", "json" } },
    { "RUNTIME", { "native", "bwrap", "gvisor" } },
    { "POLICY", { "no", "on-failure", "always" } },
    { "SIGNAL", { "TERM", "INT", "KILL", "HUP", "USR1", "USR2" } },
    { "bash|zsh|fish", { "bash", "zsh", "fish" } },
};

static void offer_kind(const char *kind, const struct place *place, const char *start)
{
    bool is_state = strcmp(kind, "FROM") == 0 || strcmp(kind, "TO") == 0;
    bool is_place = strcmp(kind, "SOURCE") == 0 || strcmp(kind, "DESTINATION") == 0;

    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        for (size_t j = 0; j < ARRAY_SIZE(fixed[i].words); j++)
            if (strcmp(fixed[i].kind, kind) == 0 && fixed[i].words[j])
                complete_offer(start, fixed[i].words[j], "");
    if (strcmp(kind, "PATH") == 0 || strcmp(kind, "FILE") == 0 || is_place)
        (void)printf(":files\n");
    if (is_state)
        complete_offer(start, "template", "the template's files");
    complete_names(is_state ? "SNAPSHOT" : is_place ? "ID:" : kind, place->sandbox, start);
}

static void complete_command(const struct command *command, int count, char *const *words)
{
    const char *last = words[count - 1];
    struct place place = { .operands = 0 };
    char kind[KIND_SIZE];

    for (int i = 0; i < count - 1; i++)
        place_pass(&place, command, words[i]);
    if (place.waiting) {
        offer_kind(place.waiting->argument, &place, last);
        return;
    }
    if (!place.is_past_options && last[0] == '-') {
        offer_options(command->options, last);
        return;
    }
    operand_kind(command->operands, place.operands, kind);
    if (command == &command_help)
        offer_commands(last);
    else
        offer_kind(kind, &place, last);
}

void complete_words(int count, char *const *words)
{
    const struct command *command;
    int used;

    if (count < 1)
        return;
    if (count == 1) {
        offer_commands(words[0]);
        complete_offer(words[0], "--help", "show the commands");
        complete_offer(words[0], "--version", "show the version");
        return;
    }
    command = command_find(count - 1, words, &used);
    if (count == 2)
        offer_below(words[0], words[1]);
    if (command)
        complete_command(command, count - used, words + used);
}
