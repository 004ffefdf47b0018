/* Which template a client of E2B means by "name", "name:tag", "namespace/name:tag", an id, or a
 * snapshot. */
#pragma once

#include "base/text/image_ref.h"
#include "store/template/template.h"

struct e2b_request;
struct err;

struct e2b_template_ref {
    char name[TEMPLATE_NAME_MAX + 1];           /* as Holt knows it */
    char id[TEMPLATE_NAME_MAX + IMAGE_REF_MAX]; /* reported to clients */
    char alias[IMAGE_REF_MAX + 1];              /* "": none */
};

/* ERR_NOT_FOUND. */
int e2b_template_find(const struct e2b_request *request, const char *asked,
                      struct e2b_template_ref *ret, struct err *err);
