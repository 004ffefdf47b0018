/* Values that must not be arguments of a command, which every process of the machine can see: they
 * are read from standard input or from a file. */
#pragma once

#include "base/cleanup.h"

/* Reads a value from a file, or from standard input (NULL), without the end of its last line. On a
 * terminal, `prompt` asks for one line, which is not shown; NULL: asks for lines up to Ctrl-D.
 * Returns NULL after it has reported an error. */
char *secret_value_read(const char *file, const char *prompt);

/* Erases and frees a value. Accepts NULL. */
void secret_value_free(char *value);
DEFINE_CLEANUP(secret_value_free, char *);
