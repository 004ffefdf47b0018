/* Texts in a file, replaced by others: what edit_file and multi_edit share. */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "tools/tool.h"

enum { EDIT_BYTES_MAX = 64 * 1024 * 1024 }; /* of a file, before and after */

/* Makes all edits in a file, one after the other, or none; the reply says what came of it. */
void edit_run(const struct tool_text *path, const struct tool_edit *edits, size_t count,
              struct tool_reply *reply);

/* Explains to the reply why a text is not in a content, and shows what is most like it. which is ""
 * or begins the sentence with the edit that it is about. */
void edit_explain_miss(const char *path, const char *which, const struct tool_text *content,
                       const struct tool_text *wanted, struct tool_reply *reply);
