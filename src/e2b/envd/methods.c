// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/methods.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/core/e2b.h"

/* Decodes the message and calls the method. Clients may be newer than these tables, so unknown
 * fields are ignored. */
#define CALL(function, type, to)                                                                   \
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);                   \
    struct type message;                                                                           \
    int r = schema_decode(SCHEMA(type, &message), request->body, DECODE_LENIENT, &arena, err);     \
                                                                                                   \
    return r < 0 ? r : envd_##function(request, &message, to, err)

#define UNARY(function, type)                                                                      \
    static int function##_call(struct e2b_request *request, struct buf *out, struct err *err)      \
    {                                                                                              \
        CALL(function, type, out);                                                                 \
    }
#define STREAM(function, type)                                                                     \
    static int function##_call(struct e2b_request *request, struct stream **ret, struct err *err)  \
    {                                                                                              \
        CALL(function, type, ret);                                                                 \
    }
#define UPLOAD UNARY
#define METHOD(kind, path, function, type, ...) kind(function, type)

ENVD_METHODS(METHOD)

#undef METHOD
#undef UPLOAD
#undef STREAM
#undef UNARY

#define UNARY .unary
#define STREAM .stream
#define UPLOAD .unary
#define METHOD(kind, route_path, function, ...)                                                    \
    { .verb = "POST", .path = route_path, kind = function##_call },

static const struct e2b_route routes[] = { ENVD_METHODS(METHOD) };

const struct e2b_routes e2b_method_routes = { routes, ARRAY_SIZE(routes) };

int envd_reply(struct buf *out, const struct schema *schema, const void *message, struct err *err)
{
    int r = schema_encode(schema, message, ENCODE_ALL, out);

    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}
