// SPDX-License-Identifier: Apache-2.0
#include "agent/type.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

/* A key with its value, which later lines may continue. */
struct entry {
    char *key, *value;
    char *end;       /* where the value ends so far */
    size_t indent;   /* of its first continued line; 0: there is none yet */
    unsigned blanks; /* empty lines since */
    unsigned line;
};

struct parser {
    struct agent_type *type;
    struct entry entry;
    unsigned line;
    bool has_port;
};

struct text_key {
    const char *name;
    size_t offset;
};

#define TEXT_KEY(name)                                                                             \
    {                                                                                              \
#name, offsetof(struct agent_type, name)                                                   \
    }

static const struct text_key text_keys[] = {
    TEXT_KEY(summary), TEXT_KEY(template), TEXT_KEY(npm),     TEXT_KEY(command),
    TEXT_KEY(task),    TEXT_KEY(serve),    TEXT_KEY(ready),   TEXT_KEY(user),
    TEXT_KEY(network), TEXT_KEY(models),   TEXT_KEY(secrets),
};

static const char *const value_words[] = { "token",         "sandbox",    "assistant", "workspace",
                                           "bridge-secret", "bridge-url", "model",     "format" };

static const char **text_field(struct agent_type *type, const struct text_key *key)
{
    return (const char **)(void *)((char *)type + key->offset);
}

/* Returns the length of @word@ at the start of the text, or 0. */
static size_t word_length(const char *text)
{
    size_t len = text[0] == '@' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz-") : 0;

    return len > 0 && text[len + 1] == '@' ? len + 2 : 0;
}

static bool word_is(const char *text, size_t len, const char *word)
{
    return len == strlen(word) + 2 && strncmp(text + 1, word, len - 2) == 0;
}

static int words_check(const char *text, struct err *err)
{
    for (const char *at = strchr(text, '@'); at; at = strchr(at + 1, '@')) {
        size_t len = word_length(at);
        bool is_known = len == 0;

        for (size_t i = 0; !is_known && i < ARRAY_SIZE(value_words); i++)
            is_known = word_is(at, len, value_words[i]);
        if (!is_known)
            return err_set(err, ERR_INVALID,
                           "unknown word '%.*s' (the words are @token@, @sandbox@, @assistant@, "
                           "@workspace@, @bridge-secret@, @bridge-url@, @model@ and @format@)",
                           (int)(len < 40 ? len : 40), at);
        at += len > 0 ? len - 1 : 0;
    }
    return 0;
}

static bool is_variable(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

static int pair_add(struct agent_pair *pairs, size_t *count, size_t max, const struct entry *entry,
                    const char *name, struct err *err)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return err_set(err, ERR_INVALID, "'%.100s' is set twice", entry->key);
    if (*count == max)
        return err_set(err, ERR_INVALID, "more than %zu of '%.100s'", max, entry->key);
    pairs[(*count)++] = (struct agent_pair){ name, entry->value };
    return words_check(entry->value, err);
}

static int env_add(struct agent_type *type, const struct entry *entry, const char *name,
                   struct err *err)
{
    if (!is_variable(name))
        return err_set(err, ERR_INVALID, "'%.100s' is not a name of a variable", name);
    if (strchr(entry->value, '\n'))
        return err_set(err, ERR_INVALID, "the value of '%.100s' has more than one line", name);
    return pair_add(type->env, &type->env_count, AGENT_ENV_MAX, entry, name, err);
}

static int file_add(struct agent_type *type, const struct entry *entry, const char *path,
                    struct err *err)
{
    if (*path != '/' || strstr(path, "/../"))
        return err_set(err, ERR_INVALID, "the file '%.100s' is not an absolute path", path);
    return pair_add(type->files, &type->file_count, AGENT_FILES_MAX, entry, path, err);
}

/* Splits the value into lines, in place. */
static int allow_add(struct agent_type *type, char *value, struct err *err)
{
    for (char *line = value, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (*line == '\0')
            continue;
        if (type->allow_count == AGENT_ALLOW_MAX)
            return err_set(err, ERR_INVALID, "more than %d rules", AGENT_ALLOW_MAX);
        type->allow[type->allow_count++] = line;
    }
    return 0;
}

static int port_set(struct parser *parser, const char *value, struct err *err)
{
    uint64_t port;

    if (parser->has_port)
        return err_set(err, ERR_INVALID, "'port' is set twice");
    if (parse_u64(value, &port) < 0 || port == 0 || port > 65535)
        return err_set(err, ERR_INVALID, "port '%.100s' is not a number from 1 to 65535", value);
    parser->has_port = true;
    parser->type->port = (unsigned)port;
    return 0;
}

static int text_set(struct agent_type *type, const struct entry *entry, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(text_keys); i++) {
        const char **field = text_field(type, &text_keys[i]);

        if (strcmp(text_keys[i].name, entry->key) != 0)
            continue;
        if (**field)
            return err_set(err, ERR_INVALID, "'%s' is set twice", entry->key);
        *field = entry->value;
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "unknown key '%.100s' (the keys are summary, template, npm, command, task, "
                   "serve, port, ready, user, network, allow, models, secrets, env NAME and file "
                   "PATH)",
                   entry->key);
}

/* Takes over the entry, if there is one. */
static int entry_finish(struct parser *parser, struct err *err)
{
    struct entry *entry = &parser->entry;
    struct agent_type *type = parser->type;
    unsigned here = parser->line;
    int r;

    if (!entry->key)
        return 0;
    *entry->end = '\0';
    parser->line = entry->line; /* for messages */
    if (strcmp(entry->key, "port") == 0)
        r = port_set(parser, entry->value, err);
    else if (strcmp(entry->key, "allow") == 0)
        r = allow_add(type, entry->value, err);
    else if (strncmp(entry->key, "env ", 4) == 0)
        r = env_add(type, entry, entry->key + 4 + strspn(entry->key + 4, " \t"), err);
    else if (strncmp(entry->key, "file ", 5) == 0)
        r = file_add(type, entry, entry->key + 5 + strspn(entry->key + 5, " \t"), err);
    else
        r = text_set(type, entry, err);
    entry->key = NULL;
    if (r == 0)
        parser->line = here;
    return r;
}

/* Cuts blanks at the end. Returns the new end. */
static char *end_trim(char *start, char *end)
{
    while (end > start && strchr(" \t\r", end[-1]))
        end--;
    *end = '\0';
    return end;
}

/* Appends a line that begins with a blank to the value above. The value lies before the line in the
 * same text, so it never grows into it. */
static int line_continue(struct parser *parser, char *line, struct err *err)
{
    struct entry *entry = &parser->entry;
    size_t indent = strspn(line, " \t"), len;

    if (!entry->key)
        return err_set(err, ERR_INVALID, "a line that begins with a blank continues nothing");
    if (entry->indent == 0)
        entry->indent = indent;
    line += indent < entry->indent ? indent : entry->indent;
    len = (size_t)(end_trim(line, line + strlen(line)) - line);
    if (entry->end > entry->value)
        *entry->end++ = '\n';
    for (; entry->blanks > 0; entry->blanks--)
        *entry->end++ = '\n';
    memmove(entry->end, line, len);
    entry->end += len;
    return 0;
}

static int line_begin(struct parser *parser, char *line, struct err *err)
{
    char *equals = strchr(line, '=');
    struct entry *entry = &parser->entry;
    int r = entry_finish(parser, err);

    if (r < 0)
        return r;
    if (!equals)
        return err_set(err, ERR_INVALID, "'%.100s' is not `key = value`", line);
    *equals = '\0';
    (void)end_trim(line, equals);
    *entry = (struct entry){ .key = line, .line = parser->line };
    entry->value = equals + 1 + strspn(equals + 1, " \t");
    entry->end = end_trim(entry->value, entry->value + strlen(entry->value));
    return 0;
}

static int line_take(struct parser *parser, char *line, struct err *err)
{
    if (line[strspn(line, " \t\r")] == '\0') {
        parser->entry.blanks += parser->entry.indent > 0;
        return 0;
    }
    if (*line == '#')
        return 0;
    return *line == ' ' || *line == '\t' ? line_continue(parser, line, err)
                                         : line_begin(parser, line, err);
}

static bool is_format(const char *text)
{
    return strcmp(text, "anthropic") == 0 || strcmp(text, "openai") == 0 ||
           strcmp(text, "any") == 0;
}

/* What no single line shows. */
static int type_check(const struct agent_type *type, struct err *err)
{
    static const char *const modes[] = { "", "none", "open", "allow" };
    bool is_mode = false;

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        is_mode = is_mode || strcmp(type->network, modes[i]) == 0;
    if (!is_mode)
        return err_set(err, ERR_INVALID, "network '%.100s' is not none, open or allow",
                       type->network);
    if (type->allow_count > 0 && strcmp(type->network, "allow") != 0)
        return err_set(err, ERR_INVALID, "'allow' needs 'network = allow'");
    if (*type->models && !*type->network)
        return err_set(err, ERR_INVALID, "'models' needs 'network', which may be none");
    if (*type->models && !is_format(type->models))
        return err_set(err, ERR_INVALID, "models '%.100s' is not anthropic, openai or any",
                       type->models);
    if (!*type->command && !*type->serve)
        return err_set(err, ERR_INVALID, "neither 'command' nor 'serve' is set");
    if ((*type->serve != '\0') != (type->port > 0))
        return err_set(err, ERR_INVALID, "'serve' and 'port' need each other");
    if (*type->ready && *type->ready != '/')
        return err_set(err, ERR_INVALID, "ready '%.100s' is not a path like /health", type->ready);
    if (*type->template && !is_name(type->template))
        return err_set(err, ERR_INVALID, "template '%.100s' is not a name", type->template);
    return 0;
}

static int lines_parse(struct parser *parser, char *text, const char *origin, struct err *err)
{
    int r = 0;

    for (char *line = text, *next; r == 0 && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        parser->line++;
        r = line_take(parser, line, err);
    }
    if (r == 0)
        r = entry_finish(parser, err);
    if (r < 0)
        return err_wrap(err, "%s:%u", origin, parser->line);
    r = type_check(parser->type, err);
    return r < 0 ? err_wrap(err, "%s", origin) : 0;
}

int agent_type_parse(const char *name, const char *origin, const char *text, struct agent_type *ret,
                     struct err *err)
{
    struct agent_type type = { .name = xstrdup(name), .text = xstrdup(text) };
    struct parser parser = { .type = &type };
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(text_keys); i++)
        *text_field(&type, &text_keys[i]) = "";
    r = lines_parse(&parser, type.text, origin, err);
    if (r < 0)
        agent_type_done(&type);
    else
        *ret = type;
    return r;
}

void agent_type_done(struct agent_type *type)
{
    free(type->name);
    free(type->text);
    *type = (struct agent_type){ .name = NULL };
}

static const char *value_find(const struct agent_values *values, const char *text, size_t len)
{
    const char *const found[] = { values->token,     values->sandbox,       values->assistant,
                                  values->workspace, values->bridge_secret, values->bridge_url,
                                  values->model,     values->format };

    for (size_t i = 0; i < ARRAY_SIZE(value_words); i++)
        if (word_is(text, len, value_words[i]))
            return found[i];
    return "";
}

int agent_values_add(const struct agent_values *values, const char *text, struct buf *out)
{
    int r = 0;

    while (r == 0 && *text) {
        size_t len = word_length(text);

        if (len > 0) {
            r = buf_add_str(out, value_find(values, text, len));
        } else {
            len = 1 + strcspn(text + 1, "@");
            r = buf_add(out, text, len);
        }
        text += len;
    }
    return r;
}

static bool pairs_use(const struct agent_pair *pairs, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        for (const char *at = strchr(pairs[i].value, '@'); at; at = strchr(at + 1, '@'))
            if (word_is(at, word_length(at), word))
                return true;
    return false;
}

bool agent_type_uses(const struct agent_type *type, const char *word)
{
    return pairs_use(type->env, type->env_count, word) ||
           pairs_use(type->files, type->file_count, word);
}
