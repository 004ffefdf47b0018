/* Bundles of holt.v1 as a front end: GET /holt.v1/bundle?sandbox=ID[&snapshot=NAME] exports,
 * PUT /holt.v1/bundle[?name=NAME] imports. Plain HTTP, because a bundle has gigabytes. */
#pragma once

#include "http/frontend.h"

/* The context is a struct api (api/frontend.h). */
extern const struct frontend_ops bundle_frontend;
