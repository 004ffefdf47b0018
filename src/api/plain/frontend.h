/* Plain downloads and uploads of holt.v1 as a front end: GET and PUT of
 * /holt.v1/file?sandbox=ID&path=/p, for clients that do not speak Connect's streams. */
#pragma once

#include "http/frontend.h"

/* The context is a struct api (api/frontend.h). */
extern const struct frontend_ops plain_frontend;
