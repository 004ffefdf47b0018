/* Tags of templates: which build "name:tag" is. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "store/template/template.h"

struct err;

#define E2B_TAG_DEFAULT "default"

enum { E2B_TAGS_MAX = 256 }; /* of one template */

bool e2b_tag_is_valid(const char *tag);

/* "name", "name:tag" or "namespace/name:tag"; the tag is "" where there is none. ERR_INVALID. */
int e2b_tag_split(const char *asked, char name[TEMPLATE_NAME_MAX + 1],
                  char tag[TEMPLATE_NAME_MAX + 1], struct err *err);

/* Returns the build that a tag ("": the default) of a template refers to, or NULL. */
const char *e2b_tag_build(const json_t *template, const char *tag);
