/* What a journal says of a process, as JSON. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct process_end;
struct process_spec;

/* NULL when memory is out, or a text is no UTF-8. */
json_t *journal_spec_write(const struct process_spec *spec);
json_t *journal_end_write(const struct process_end *end);

/* A spec in one piece of memory, to be freed; NULL for what no program of ours has written. */
struct process_spec *journal_spec_read(const json_t *value);
bool journal_end_read(const json_t *value, struct process_end *ret);
