// SPDX-License-Identifier: Apache-2.0
#include "cli/core/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/control.h"
#include "cli/core/terminal.h"
#include "holt.h"

enum { LINE_SIZE = 1024 };

/* All messages of holt itself are printed by this file. */
static enum err_kind last_kind;
static bool is_json;

static void write_line(bool is_error, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_line(bool is_error, const char *format, va_list args)
{
    bool is_red = is_error && terminal_has_colours(STDERR_FILENO);
    char line[LINE_SIZE];
    size_t len = (size_t)snprintf(line, sizeof(line), "%sholt: %s", is_red ? COLOUR_RED : "",
                                  is_red ? COLOUR_NONE : "");

    (void)vsnprintf(line + len, sizeof(line) - len - 1, format, args);
    text_drop_controls(line + len);
    len = strlen(line);
    line[len++] = '\n';
    (void)write_all(STDERR_FILENO, line, len);
}

int report(const char *format, ...)
{
    va_list args;

    last_kind = ERR_NONE;
    va_start(args, format);
    write_line(true, format, args);
    va_end(args);
    return STATUS_HOLT;
}

void report_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(false, format, args);
    va_end(args);
}

int report_usage(const char *format, ...)
{
    va_list args;

    last_kind = ERR_INVALID;
    va_start(args, format);
    write_line(true, format, args);
    va_end(args);
    return STATUS_HOLT;
}

static int report_kind(enum err_kind kind, const char *message, const char *remedy)
{
    (void)report("%s", message);
    last_kind = kind;
    if (remedy && *remedy)
        (void)dprintf(STDERR_FILENO, "%*s%s\n", (int)strlen("holt: "), "", remedy);
    return STATUS_HOLT;
}

int report_err(const struct err *err)
{
    return report_kind(err->kind, err->msg, err_remedy_of(err));
}

static int report_json(const struct holt_error *error)
{
    cleanup_json json_t *object =
        json_pack("{s:o,s:o,s:o,s:o,s:b}", "code", json_text(error->code), "message",
                  json_text(error->message), "cause", json_text(error->cause), "remedy",
                  json_text(error->remedy), "retryable", error->is_retryable);
    cleanup_free char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    if (text)
        (void)dprintf(STDERR_FILENO, "%s\n", text);
    return STATUS_HOLT;
}

int report_holt_error(const struct holt_error *error)
{
    char remedy[sizeof(error->remedy)];

    last_kind = err_kind_of_code(error->code);
    if (is_json)
        return report_json(error);
    memcpy(remedy, error->remedy, sizeof(remedy));
    text_drop_controls(remedy);
    return report_kind(last_kind, error->message, remedy);
}

void report_in_json(void)
{
    is_json = true;
}

int report_exit_status(int status)
{
    return status == STATUS_HOLT ? err_kind_row(last_kind)->exit_status : status;
}
