/* The rules of proto/holt/v1/options.proto, for the decoder. */
#pragma once

#include <stddef.h>

struct err;
struct schema_field;

/* Checks how many items a list or a map has, before room is made for them. */
int rule_check_count(const struct schema_field *field, size_t count, struct err *err);

/* Checks the decoded value of a field: 0, or a negative errno with err set. */
int rule_check(const struct schema_field *field, const char *message, struct err *err);
