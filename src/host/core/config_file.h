/* The configuration file: lines of `key = value`. A # at the start of a line or after a blank
 * starts a comment; [section] prefixes the keys below it with "section.". Values may be in double
 * quotes. */
#pragma once

#include <stdbool.h>

struct config;
struct err;

enum { KEY_BYTES_MAX = 64 };

/* Applies the file to config. A missing file is no error if may_miss is set. */
int config_file_load(struct config *config, const char *path, bool may_miss, struct err *err);
