/* The parameters of a tool, from the words of a command line. */
#pragma once

#include <jansson.h>

struct err;

/* The parameters from --json: the name of a file, "-" for stdin, or the object itself. */
int tool_params_load(const char *value, json_t **ret, struct err *err);

/* Adds one word: KEY=TEXT (text, converted by the daemon; repeated: a list), KEY=@FILE (the
 * contents of a file, or of stdin for "-") or KEY:=JSON (any value). */
int tool_params_add(json_t *params, const char *word, struct err *err);
