/* Importing templates, for `holt template import` and `holt template build`. */
#pragma once

struct holt_template_settings;
struct output_options;

/* Imports an absolute path under this name with settings (NULL: none), and shows the progress
 * and then the template. Returns the exit status. */
int template_import(const char *name, const char *path,
                    const struct holt_template_settings *settings,
                    const struct output_options *output);
