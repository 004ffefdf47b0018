/* Host names: one spelling for each, and the patterns of rules. Only ASCII is compared, so letters
 * that look alike are different names; an internationalized name is written as "xn--". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { NET_NAME_MAX = 253, NET_LABEL_MAX = 63, NET_NAME_SIZE = NET_NAME_MAX + 1 };

/* Writes a host name in lower case without a trailing dot. Returns NULL, or the reason why the
 * bytes are not a name: NUL, control or non-ASCII bytes, empty or over-long labels, and addresses
 * in any notation ("127.1", "0x7f000001", "2130706433"). */
const char *net_name_normalize(const char *text, size_t len, char ret[NET_NAME_SIZE]);

/* Does the same for a pattern: a name, "*.name", or "*". */
const char *net_pattern_normalize(const char *text, size_t len, char ret[NET_NAME_SIZE]);

/* Returns whether a normalized name matches a normalized pattern: "*.example.com" matches names
 * with at least one label in front of example.com, and "*" every name. */
bool net_pattern_matches(const char *pattern, const char *name);
