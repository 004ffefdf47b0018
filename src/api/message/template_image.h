/* What an image says of its processes, in the message of its template. */
#pragma once

#include "wire/holt_v1.h"

struct arena;
struct host;

/* Fills in the command and the image of a template, which has this name in the store. Settings that
 * cannot be read are none. */
void template_image_fill(struct host *host, const char *store_name, struct arena *arena,
                         struct msg_template *ret);
