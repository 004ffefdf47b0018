/* The parameters of a tool, from the words of a command line. */
#pragma once

#include <jansson.h>

struct err;

/* The parameters from --json: the name of a file, "-" for stdin, or the object itself. */
int tool_params_load(const char *value, json_t **ret, struct err *err);

/* Adds one word:
 *   KEY=TEXT    the text, of which the daemon makes what the tool takes; again: a list
 *   KEY=@FILE   what is in a file, or for "-" on stdin
 *   KEY:=JSON   anything else */
int tool_params_add(json_t *params, const char *word, struct err *err);
