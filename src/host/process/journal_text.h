/* JSON encoding of the journal's columns. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct process_end;
struct process_spec;

/* Returns NULL if memory is exhausted or a string is not UTF-8. */
json_t *journal_spec_write(const struct process_spec *spec);
json_t *journal_end_write(const struct process_end *end);

/* Returns a spec in one block of memory, which the caller frees; NULL if the value is malformed. */
struct process_spec *journal_spec_read(const json_t *value);
bool journal_end_read(const json_t *value, struct process_end *ret);
