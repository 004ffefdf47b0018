/* Importing templates, for `holt template import` and `holt template build`. */
#pragma once

struct holt_template_settings;

/* Imports an absolute path under this name with settings (NULL: none), and shows the progress.
 * Returns the exit status. */
int template_import(const char *name, const char *path,
                    const struct holt_template_settings *settings);
