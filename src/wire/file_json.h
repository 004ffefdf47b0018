/* Files in the JSON of the API: writes an entry as a message and reads it back. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/files/file_entry.h"

struct err;

/* Sets field to the text, and raw_field to its bytes if it is not UTF-8. Returns 0 or -ENOMEM. */
int file_json_set_path(json_t *object, const char *field, const char *raw_field, const char *text);

/* Reads the path from either field, "" if both are absent: up to ENTRY_PATH_MAX bytes, without
 * NUL. */
int file_json_get_path(const json_t *object, const char *field, const char *raw_field,
                       char ret[ENTRY_PATH_MAX + 1], struct err *err);

/* Returns an entry as a message, or NULL. */
json_t *file_json_of(const struct file_entry *entry);

/* Memory that an entry's strings point to. */
struct file_json_texts {
    char path[ENTRY_PATH_MAX + 1];
    char target[ENTRY_PATH_MAX + 1];
    char same_as[ENTRY_PATH_MAX + 1];
};

/* Parses a message as an entry, which points into texts. */
int file_json_get(const json_t *message, struct file_json_texts *texts, struct file_entry *ret,
                  struct err *err);
