/* What the name of an image means here, where no registry is asked. */
#pragma once

#include "e2b/template/template_ref.h"

struct e2b_request;
struct err;

enum { E2B_IMAGE_NOTICE_BYTES = 240 };

/* The template that stands for an image: the one with its name, or, of images that promise no more
 * than a local one keeps, that; the notice then says so ("" otherwise). ERR_INVALID names any
 * other and says what to do. */
int e2b_image_find(const struct e2b_request *request, const char *image,
                   struct e2b_template_ref *ret, char notice[E2B_IMAGE_NOTICE_BYTES],
                   struct err *err);
