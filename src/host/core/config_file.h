/* The configuration file: lines of `key = value`; # starts a comment at the start of a line or
 * behind a blank; [section] puts "section." in front of the keys below it. Values may stand in
 * double quotes. */
#pragma once

#include <stdbool.h>

struct config;
struct err;

enum { KEY_BYTES_MAX = 64 };

/* Sets what the file says; one that is not there is fine where it may miss. */
int config_file_load(struct config *config, const char *path, bool may_miss, struct err *err);
