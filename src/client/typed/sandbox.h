/* Sandboxes as the typed layer reads them. */
#pragma once

#include <jansson.h>

struct reading;

/* A read_fn of struct holt_sandbox. */
void sandbox_read(struct reading *reading, const json_t *object, void *into);
