/* Log lines for the operator on stderr. Only api, daemon and cli log; modules below them return
 * errors. */
#pragma once

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Drops messages above this level; the default is LOG_INFO. */
void log_set_level(enum log_level level);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
