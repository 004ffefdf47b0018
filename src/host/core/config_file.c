// SPDX-License-Identifier: Apache-2.0
#include "host/core/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "host/core/config.h"

enum { FILE_BYTES_MAX = 64 * 1024 };

/* Removes blanks at both ends, in place. */
static char *trim(char *text)
{
    size_t len;

    text += strspn(text, " \t\r");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

static void comment_cut(char *line)
{
    for (char *c = line; *c; c++) {
        if (*c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t')) {
            *c = '\0';
            return;
        }
    }
}

static int unquote(char **value, struct err *err)
{
    size_t len = strlen(*value);

    if (**value != '"')
        return 0;
    if (len < 2 || (*value)[len - 1] != '"')
        return err_set(err, ERR_INVALID, "missing closing quote");
    (*value)[len - 1] = '\0';
    (*value)++;
    return 0;
}

static int section_read(char *line, char *section, struct err *err)
{
    size_t len = strlen(line);

    if (line[len - 1] != ']' || len < 3 || len > KEY_BYTES_MAX)
        return err_set(err, ERR_INVALID, "'%.100s' is not a [section]", line);
    line[len - 1] = '\0';
    (void)snprintf(section, KEY_BYTES_MAX, "%s", trim(line + 1));
    return 0;
}

static int assignment_read(struct config *config, const char *section, char *line, struct err *err)
{
    char key[2 * KEY_BYTES_MAX];
    char *equals = strchr(line, '=');
    char *value;
    int r;

    if (!equals)
        return err_set(err, ERR_INVALID, "'%.100s' is not `key = value`", line);
    *equals = '\0';
    value = trim(equals + 1);
    r = unquote(&value, err);
    if (r < 0)
        return r;
    (void)snprintf(key, sizeof(key), "%s%s%s", section, *section ? "." : "", trim(line));
    return config_set(config, key, value, err);
}

static int line_read(struct config *config, char *section, char *line, struct err *err)
{
    comment_cut(line);
    line = trim(line);
    if (*line == '\0')
        return 0;
    if (*line == '[')
        return section_read(line, section, err);
    return assignment_read(config, section, line, err);
}

static int lines_read(struct config *config, const char *path, char *text, struct err *err)
{
    char section[KEY_BYTES_MAX] = "";
    unsigned number = 0;

    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        if (line_read(config, section, line, err) < 0)
            return err_wrap(err, "%s:%u", path, number);
    }
    return 0;
}

int config_file_load(struct config *config, const char *path, bool may_miss, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    int r = file_read_at(AT_FDCWD, path, &content);

    if (r == -ENOENT && may_miss)
        return 0;
    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no configuration file '%s'", path);
    if (r == -ENOBUFS)
        return err_set(err, ERR_INVALID, "%s is larger than %d bytes", path, FILE_BYTES_MAX);
    if (r < 0)
        return err_sys(err, r, "read %s", path);
    if (content.len == 0)
        return 0;
    if (strlen(content.data) != content.len)
        return err_set(err, ERR_INVALID, "%s is not a text file", path);
    return lines_read(config, path, content.data, err);
}
