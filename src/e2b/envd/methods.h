/* The Connect methods of E2B's envd, as proto/e2b/envd describes them. A unary method appends its
 * reply to out, nothing for an empty one; a message is valid until the method returns. */
#pragma once

#include "e2b/envd_messages.h"

struct buf;
struct e2b_request;
struct err;
struct stream;

#define UNARY(function, type)                                                                      \
    int envd_##function(struct e2b_request *request, const struct type *message, struct buf *out,  \
                        struct err *err);
#define STREAM(function, type)                                                                     \
    int envd_##function(struct e2b_request *request, const struct type *message,                   \
                        struct stream **ret, struct err *err);
#define UPLOAD UNARY
#define METHOD(kind, path, function, type, ...) kind(function, type)

/* envd_process_start, envd_filesystem_stat, ... */
ENVD_METHODS(METHOD)

#undef METHOD
#undef UPLOAD
#undef STREAM
#undef UNARY

/* Appends the reply of a unary method: 0, or a negative errno with err set. */
int envd_reply(struct buf *out, const struct schema *schema, const void *message, struct err *err);
