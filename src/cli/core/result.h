/* Results of libholt as the commands print them. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"

/* Frees the result that a variable points to. */
void result_free(void *slot);
#define cleanup_result cleanup_with(result_free)

/* Prints text with "?" for each control character. */
void print_word(const char *text);

/* Prints the members of an object as "  KEY=VALUE" words, control characters as "?". */
void print_members(const json_t *object);

/* Returns a text of an object, or "" if it has none of this name. */
const char *json_text_of(const json_t *object, const char *name);
