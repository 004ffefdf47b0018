/* What the name of an image means here, where no registry is asked. */
#pragma once

#include "e2b/template/template_ref.h"

struct e2b_request;
struct err;

enum { E2B_IMAGE_NOTICE_BYTES = 240 };

/* Returns the template for an image: the one of its name, or a local one that provides what the
 * image promises; the notice then says so ("" otherwise). Fails with ERR_INVALID, naming the image
 * and the remedy. */
int e2b_image_find(const struct e2b_request *request, const char *image,
                   struct e2b_template_ref *ret, char notice[E2B_IMAGE_NOTICE_BYTES],
                   struct err *err);
