// SPDX-License-Identifier: Apache-2.0
#include "builder/dockerfile/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "builder/dockerfile/words.h"

#define BLANKS " \t"

enum { DIRECTIVE_MAX = 128 };

static const char *const keywords[] = {
    "ADD",    "ARG",   "CMD",         "COPY",  "ENTRYPOINT", "ENV",
    "EXPOSE", "FROM",  "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
    "RUN",    "SHELL", "STOPSIGNAL",  "USER",  "VOLUME",     "WORKDIR",
};

/* The lines that are still to be read. */
struct reader {
    const char *at, *end;
    unsigned line; /* number of the last one */
    char escape;
};

/* Takes the next line, without its end. Returns false at the end of the text. */
static bool line_next(struct reader *reader, const char **ret, size_t *ret_len)
{
    const char *newline;
    size_t len;

    if (reader->at == reader->end)
        return false;
    newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    len = (size_t)((newline ? newline : reader->end) - reader->at);
    *ret = reader->at;
    *ret_len = len > 0 && reader->at[len - 1] == '\r' ? len - 1 : len;
    reader->at += len + (newline ? 1 : 0);
    reader->line++;
    return true;
}

static size_t blanks_count(const char *text, size_t len)
{
    size_t count = 0;

    while (count < len && (text[count] == ' ' || text[count] == '\t'))
        count++;
    return count;
}

static bool line_is_comment(const char *line, size_t len)
{
    size_t blanks = blanks_count(line, len);

    return blanks < len && line[blanks] == '#';
}

/* --- directives ------------------------------------------------------------------------------- */

/* Reads "# name=value". Returns false if the line is none. */
static bool directive_read(struct reader *reader, const char *line, size_t len)
{
    char text[DIRECTIVE_MAX], name[DIRECTIVE_MAX], value[DIRECTIVE_MAX];

    if (len >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", (int)len, line);
    if (sscanf(text, " # %127[a-zA-Z] = %127s", name, value) != 2)
        return false;
    if (strcasecmp(name, "escape") == 0 && (strcmp(value, "`") == 0 || strcmp(value, "\\") == 0))
        reader->escape = value[0];
    return true;
}

/* Directives stand before everything else. */
static void directives_read(struct reader *reader)
{
    struct reader before = *reader;
    const char *line;
    size_t len;

    while (line_next(reader, &line, &len) && directive_read(reader, line, len)) {
        before = *reader;
    }
    before.escape = reader->escape;
    *reader = before;
}

/* --- instructions ----------------------------------------------------------------------------- */

/* Returns the length of a line without the escape at its end that continues it, or -1 if there is
 * none. */
static ssize_t continued_len(const struct reader *reader, const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    return len > 0 && line[len - 1] == reader->escape ? (ssize_t)len - 1 : -1;
}

/* Joins an instruction's lines, of which the first is given. Comments and empty lines between them
 * are dropped. */
static int lines_join(struct reader *reader, const char *line, size_t len, struct buf *text)
{
    ssize_t part = continued_len(reader, line, len);
    int r = buf_add(text, line, part < 0 ? len : (size_t)part);

    while (r == 0 && part >= 0 && line_next(reader, &line, &len)) {
        if (line_is_comment(line, len) || blanks_count(line, len) == len)
            continue;
        part = continued_len(reader, line, len);
        r = buf_add(text, line, part < 0 ? len : (size_t)part);
    }
    return r;
}

static bool keyword_is_known(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
        if (strcmp(keywords[i], word) == 0)
            return true;
    return false;
}

static int keyword_take(const char **text, struct instruction *item, struct err *err)
{
    size_t len = strcspn(*text, BLANKS);

    (void)snprintf(item->keyword, sizeof(item->keyword), "%.*s", (int)len, *text);
    for (char *c = item->keyword; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (len >= sizeof(item->keyword) || !keyword_is_known(item->keyword))
        return err_set(err, ERR_INVALID, "line %u: unknown instruction '%.32s'", item->line,
                       item->keyword);
    *text += len;
    *text += strspn(*text, BLANKS);
    return 0;
}

static int flags_take(const char **text, struct instruction *item, struct err *err)
{
    while (strncmp(*text, "--", 2) == 0) {
        size_t len = strcspn(*text, BLANKS);

        if (item->flag_count == INSTRUCTION_FLAGS_MAX)
            return err_set(err, ERR_INVALID, "line %u: more than %d flags", item->line,
                           INSTRUCTION_FLAGS_MAX);
        item->flags[item->flag_count++] = xasprintf("%.*s", (int)len, *text);
        *text += len;
        *text += strspn(*text, BLANKS);
    }
    return 0;
}

/* --- heredocs --------------------------------------------------------------------------------- */

/* Reads <<NAME, <<-NAME, <<"NAME" or <<'NAME' at the start of a word. Returns what follows it, or
 * NULL. */
static const char *heredoc_head(const char *text, struct heredoc *ret, bool *ret_strips)
{
    char quote = '\0';
    size_t len;

    if (strncmp(text, "<<", 2) != 0)
        return NULL;
    text += 2;
    *ret_strips = *text == '-';
    text += *ret_strips;
    if (*text == '"' || *text == '\'')
        quote = *text++;
    for (len = 0; isalnum((unsigned char)text[len]) || (text[len] && strchr("_-.", text[len]));)
        len++;
    if (len == 0 || (quote && text[len] != quote))
        return NULL;
    ret->name = xasprintf("%.*s", (int)len, text);
    ret->is_plain = quote != '\0';
    return text + len + (quote ? 1 : 0);
}

static int heredoc_read(struct reader *reader, struct instruction *item, bool strips,
                        struct err *err)
{
    struct heredoc *doc = &item->heredocs[item->heredoc_count];
    cleanup_with(buf_done) struct buf text = BUF_INIT(DOCKERFILE_BYTES_MAX);
    const char *line;
    size_t len;

    item->heredoc_count++;
    while (line_next(reader, &line, &len)) {
        while (strips && len > 0 && *line == '\t') {
            line++;
            len--;
        }
        if (strlen(doc->name) == len && memcmp(line, doc->name, len) == 0) {
            doc->text = xstrdup(text.data ? text.data : "");
            return 0;
        }
        if (buf_add(&text, line, len) < 0 || buf_add_str(&text, "\n") < 0)
            break;
    }
    return err_set(err, ERR_INVALID, "line %u: the document '%.32s' has no end", item->line,
                   doc->name);
}

/* Reads the documents that an instruction names, in their order. */
static int heredocs_read(struct reader *reader, struct instruction *item, struct err *err)
{
    const char *text = item->text;
    char quote = '\0';
    int r = 0;

    while (r == 0 && *text) {
        bool begins = text == item->text || text[-1] == ' ' || text[-1] == '\t';
        struct heredoc *doc = &item->heredocs[item->heredoc_count];
        bool strips = false;
        const char *next = NULL;

        if (begins && !quote && item->heredoc_count < HEREDOCS_MAX)
            next = heredoc_head(text, doc, &strips);
        if (next)
            r = heredoc_read(reader, item, strips, err);
        else
            quote = word_quote(quote, *text);
        text = next ? next : text + 1;
    }
    return r;
}

/* --- the file --------------------------------------------------------------------------------- */

static bool keyword_has_heredocs(const struct instruction *item)
{
    return item->text[0] != '[' &&
           (strcmp(item->keyword, "RUN") == 0 || strcmp(item->keyword, "COPY") == 0 ||
            strcmp(item->keyword, "ADD") == 0);
}

static int instruction_read(struct reader *reader, const char *line, size_t len,
                            struct instruction *item, struct err *err)
{
    cleanup_with(buf_done) struct buf joined = BUF_INIT(DOCKERFILE_BYTES_MAX);
    const char *text;
    size_t end;
    int r;

    item->line = reader->line;
    r = lines_join(reader, line, len, &joined);
    if (r < 0)
        return err_sys(err, r, "line %u", item->line);
    text = joined.data ? joined.data : "";
    text += strspn(text, BLANKS);
    r = keyword_take(&text, item, err);
    if (r == 0)
        r = flags_take(&text, item, err);
    if (r < 0)
        return r;
    for (end = strlen(text); end > 0 && isspace((unsigned char)text[end - 1]);)
        end--;
    item->text = xasprintf("%.*s", (int)end, text);
    if (end == 0)
        return err_set(err, ERR_INVALID, "line %u: %s needs an argument", item->line,
                       item->keyword);
    return keyword_has_heredocs(item) ? heredocs_read(reader, item, err) : 0;
}

static int instruction_add(struct reader *reader, const char *line, size_t len,
                           struct dockerfile *file, struct err *err)
{
    if (file->count == INSTRUCTIONS_MAX)
        return err_set(err, ERR_INVALID, "line %u: more than %d instructions", reader->line,
                       INSTRUCTIONS_MAX);
    file->items = xreallocarray(file->items, file->count + 1, sizeof(*file->items));
    file->items[file->count] = (struct instruction){ .line = 0 };
    file->count++;
    return instruction_read(reader, line, len, &file->items[file->count - 1], err);
}

int dockerfile_parse(const char *text, size_t len, struct dockerfile *ret, struct err *err)
{
    cleanup_with(dockerfile_done) struct dockerfile file = { .escape = '\\' };
    struct reader reader = { .at = text, .end = text + len, .escape = '\\' };
    const char *line;
    size_t line_len;
    int r = 0;

    if (len > DOCKERFILE_BYTES_MAX || memchr(text, '\0', len))
        return err_set(err, ERR_INVALID, "the Dockerfile is no text of at most %d bytes",
                       DOCKERFILE_BYTES_MAX);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        reader.at += 3;
    directives_read(&reader);
    while (r == 0 && line_next(&reader, &line, &line_len)) {
        if (!line_is_comment(line, line_len) && blanks_count(line, line_len) < line_len)
            r = instruction_add(&reader, line, line_len, &file, err);
    }
    if (r < 0)
        return r;
    file.escape = reader.escape;
    *ret = file;
    file = (struct dockerfile){ .items = NULL };
    return 0;
}

void dockerfile_done(struct dockerfile *file)
{
    for (size_t i = 0; i < file->count; i++) {
        struct instruction *item = &file->items[i];

        for (size_t j = 0; j < item->flag_count; j++)
            free(item->flags[j]);
        for (size_t j = 0; j < item->heredoc_count; j++) {
            free(item->heredocs[j].name);
            free(item->heredocs[j].text);
        }
        free(item->text);
    }
    free(file->items);
    *file = (struct dockerfile){ .items = NULL };
}
