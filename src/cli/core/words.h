/* KEY=VALUE on a command line. */
#pragma once

#include <jansson.h>

struct err;

/* Adds the label to an object of texts. */
int label_add(json_t *labels, const char *text, struct err *err);
