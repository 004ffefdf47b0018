/* Processes and their ends as the typed layer reads them. */
#pragma once

#include <jansson.h>

struct reading;

/* read_fns of struct holt_end (a message Ended) and struct holt_process_info. */
void end_read(struct reading *reading, const json_t *object, void *into);
void process_info_read(struct reading *reading, const json_t *object, void *into);
