/* `holt template build -f`: a template from a Dockerfile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct output_options;

struct image_build_options {
    const char *file; /* "-": standard input; NULL: Dockerfile in the directory */
    const char *name; /* NULL: that of the directory */
    const char *target;
    const char **args; /* "NAME=value", ends with NULL */
    size_t arg_count;
    bool is_forced;
};

/* Builds the template and prints its name. Returns the exit status. */
int image_build_run(const char *dir, const struct image_build_options *options,
                    const struct output_options *output);
