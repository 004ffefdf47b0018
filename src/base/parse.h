/* Text from people to values: sizes, durations, numbers, names. Each returns 0 or -EINVAL/-ERANGE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "512M", "1.5G", "4096", "64KiB": bytes, powers of 1024. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* "30s", "1.5m", "250ms", "2h", "1d"; a bare number is seconds. */
int parse_duration_ms(const char *text, uint64_t *ret_ms);

int parse_u64(const char *text, uint64_t *ret_value);

/* "1.5" cpus to 1500 thousandths. */
int parse_cpus(const char *text, uint32_t *ret_millis);

int parse_bool(const char *text, bool *ret_value);

/* Whether text may name a template or sandbox: [a-z0-9][a-z0-9._-]*, at most 64 bytes. */
bool is_name(const char *text);
