/* Parses text from people: sizes, durations, numbers, names. Each returns 0 or -EINVAL/-ERANGE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "512M", "1.5G", "4096", "64KiB": bytes, powers of 1024. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* "30s", "1.5m", "250ms", "2h", "1d", "1h30m"; a bare number is seconds. */
int parse_duration_ms(const char *text, uint64_t *ret_ms);

int parse_u64(const char *text, uint64_t *ret_value);

/* Parses "1.5" CPUs to 1500 thousandths. */
int parse_cpus(const char *text, uint32_t *ret_millis);

int parse_bool(const char *text, bool *ret_value);

/* Convert a time as RFC 3339 in UTC, "2026-11-15T10:00:00.123Z", to milliseconds since 1970 and
 * back. */
enum { TIME_TEXT_SIZE = 40 };
int parse_time_ms(const char *text, uint64_t *ret_ms);
void format_time_ms(uint64_t ms, char ret[TIME_TEXT_SIZE]);

/* Returns whether text is a valid template name: [a-z0-9][a-z0-9._-]*, at most 64 bytes. */
bool is_name(const char *text);

/* Returns whether text is a valid sandbox or snapshot name: [A-Za-z0-9][A-Za-z0-9._-]*, at most
 * max bytes. */
bool is_handle(const char *text, size_t max);
