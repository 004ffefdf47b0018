// SPDX-License-Identifier: Apache-2.0
/* The script that sets the variables and the directory of a shell before a command. It runs hidden,
 * ends with 0, and prints a letter for what failed: with set -e, a failed command would end the
 * shell. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/shell/run_internal.h"
#include "wire/message.h"

static bool name_is_valid(const char *variable)
{
    size_t len = strcspn(variable, "=");

    if (len == 0 || isdigit((unsigned char)variable[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)variable[i]) && variable[i] != '_')
            return false;
    return true;
}

/* Appends a text as one word of a shell. */
static int quoted_add(struct buf *out, const char *text)
{
    int r = buf_add_str(out, "'");

    for (size_t len; r == 0 && *text; text += len) {
        len = strcspn(text, "'");
        r = buf_add(out, text, len);
        if (r == 0 && text[len] == '\'') {
            r = buf_add_str(out, "'\\''");
            len++;
        }
    }
    return r == 0 ? buf_add_str(out, "'") : r;
}

static int export_add(struct buf *out, const char *variable)
{
    const char *value = variable + strcspn(variable, "=");
    int r = buf_add_str(out, "\\command export ");

    if (r == 0)
        r = buf_add(out, variable, (size_t)(value - variable));
    if (r == 0)
        r = buf_add_str(out, "=");
    if (r == 0)
        r = quoted_add(out, *value ? value + 1 : "");
    return r == 0
               ? buf_printf(out, " 2>/dev/null || \\command printf %c\n", SHELL_PREPARE_NO_VARIABLE)
               : r;
}

static int enter_add(struct buf *out, const char *dir)
{
    int r = buf_add_str(out, "\\command cd -- ");

    if (r == 0)
        r = quoted_add(out, dir);
    return r == 0 ? buf_printf(out, " >/dev/null 2>&1 || \\command printf %c\n",
                               SHELL_PREPARE_NO_DIRECTORY)
                  : r;
}

int shell_preparation_make(const struct shell_command *command, char **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(MESSAGE_SHELL_TEXT_MAX);
    int r = 0;

    for (char *const *variable = command->env; r == 0 && variable && *variable; variable++) {
        if (!name_is_valid(*variable))
            return err_set(err, ERR_INVALID, "'%.80s' is no name of a variable in a shell",
                           *variable);
        r = export_add(&out, *variable);
    }
    if (r == 0 && command->cwd)
        r = enter_add(&out, command->cwd);
    if (r < 0)
        return err_set(err, ERR_EXHAUSTED, "the environment is longer than %d bytes",
                       MESSAGE_SHELL_TEXT_MAX);
    *ret = out.len > 0 ? xstrdup(out.data) : NULL;
    return 0;
}
