// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

enum { LOG_LINE_MAX = 1024 };

static _Atomic enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

/* One write(2) a line, so that lines of several threads never mix. */
__attribute__((format(printf, 2, 0))) static void log_line(enum log_level level, const char *format,
                                                           va_list args)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    char line[LOG_LINE_MAX];
    struct timeval now;
    struct tm utc;
    size_t used;
    int len;

    if (level > threshold)
        return;
    (void)gettimeofday(&now, NULL);
    (void)gmtime_r(&now.tv_sec, &utc);
    used = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
    used += (size_t)snprintf(line + used, sizeof(line) - used, ".%03ldZ %s ",
                             (long)now.tv_usec / 1000, names[level]);
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
