/* What commands that import a template have in common. */
#pragma once

#include <jansson.h>

/* Imports an absolute path under this name, with settings (taken; NULL: none), and shows how far it
 * is: the exit status. */
int template_import_follow(const char *name, const char *path, json_t *settings);
