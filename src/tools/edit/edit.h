/* Replaces strings in a file, for edit_file and multi_edit. */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "tools/tool.h"

enum { EDIT_BYTES_MAX = 64 * 1024 * 1024 }; /* of a file, before and after an edit */

/* Sets the error of the reply: why a string was not found, with the most similar lines. which is ""
 * or a prefix that names the edit. */
void edit_explain_miss(const char *path, const char *which, const struct tool_text *content,
                       const struct tool_text *wanted, struct tool_reply *reply);
