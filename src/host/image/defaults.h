/* What an image says of its processes: variables, user and working directory, as defaults of every
 * process of a sandbox whose template is an image. */
#pragma once

#include "host/process/process.h"
#include "store/template/settings.h"

struct host;

struct image_defaults {
    struct process_spec spec; /* the spec with the defaults; valid until image_defaults_done */
    struct template_settings settings;
    char **image_env; /* of the image */
    char **env;       /* both; words are borrowed */
    char *user;
};

/* Fills in what a spec leaves open. Settings that cannot be read are none. */
void image_defaults_take(struct host *host, const char *template, const struct process_spec *spec,
                         struct image_defaults *ret);
void image_defaults_done(struct image_defaults *defaults);
