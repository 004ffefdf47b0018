// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text/parse.h"

enum { LOG_LINE_MAX = 1024 };

static _Atomic enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

/* One write(2) per line, so that lines of several threads do not mix. */
__attribute__((format(printf, 2, 0))) static void log_line(enum log_level level, const char *format,
                                                           va_list args)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    char line[LOG_LINE_MAX];
    char now[TIME_TEXT_SIZE];
    size_t used;
    int len;

    if (level > threshold)
        return;
    format_time_ms(clock_wall_ms(), now);
    used = (size_t)snprintf(line, sizeof(line), "%s %s ", now, names[level]);
    len = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
    if (len > 0)
        used += (size_t)len < sizeof(line) - used - 1 ? (size_t)len : sizeof(line) - used - 2;
    line[used++] = '\n';
    (void)write_all(STDERR_FILENO, line, used);
}

#define DEFINE_LOG(name, level)                                                                    \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        log_line(level, format, args);                                                             \
        va_end(args);                                                                              \
    }

DEFINE_LOG(log_error, LOG_ERROR)
DEFINE_LOG(log_warn, LOG_WARN)
DEFINE_LOG(log_info, LOG_INFO)
DEFINE_LOG(log_debug, LOG_DEBUG)
