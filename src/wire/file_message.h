/* Files in the messages of holt.v1, both ways. A path is any bytes: the text field has it as UTF-8,
 * and where it is not UTF-8 the raw_ field beside it has it exactly. */
#pragma once

#include "base/files/file_entry.h"
#include "wire/holt_v1.h"

struct err;

/* Returns a path that is UTF-8, for the text field; otherwise NULL. Accepts NULL. */
const char *path_text(const char *path);

/* Returns the bytes of a path that is not UTF-8, for the raw_ field; otherwise none. Accepts NULL.
 */
struct span path_raw(const char *path);

/* Returns the path of a text field and its raw_ field. */
const char *path_of(const char *text, const struct span *raw);

/* Returns the entry as a message, which points into the entry. */
struct msg_file_entry file_entry_message(const struct file_entry *entry);

/* Fills an entry, which points into the message. The message may be of a client: ERR_INVALID for a
 * type or a path that cannot be. */
int file_entry_of(const struct msg_file_entry *message, struct file_entry *ret, struct err *err);
