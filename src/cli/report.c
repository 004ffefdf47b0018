// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "holt.h"

enum { LINE_SIZE = 1024 };

void drop_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int report(const char *format, ...)
{
    char line[LINE_SIZE] = "holt: ";
    size_t len = strlen(line);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + len, sizeof(line) - len - 1, format, args);
    va_end(args);
    drop_controls(line);
    len = strlen(line);
    line[len++] = '\n';
    (void)write_all(STDERR_FILENO, line, len);
    return STATUS_HOLT;
}

int report_err(const struct err *err)
{
    return report("%s", err->msg);
}

int report_holt_error(const struct holt_error *error)
{
    return report("%s", error->message);
}
