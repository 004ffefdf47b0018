// SPDX-License-Identifier: Apache-2.0
#include "api/route.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"

static int access_check(const struct call *call, bool is_local, struct err *err)
{
    if (!is_local || call->is_local)
        return 0;
    return err_set(err, ERR_DENIED, "this method is only allowed over the unix socket");
}

/* Decodes the request and calls the function of the method. */
#define CALL(type, is_local, ...)                                                                  \
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);                   \
    struct call with = *call;                                                                      \
    struct type request;                                                                           \
    int r = access_check(call, is_local, err);                                                     \
                                                                                                   \
    with.message = json;                                                                           \
    with.arena = &arena;                                                                           \
    if (r == 0)                                                                                    \
        r = schema_decode(SCHEMA(type, &request), json, DECODE_REQUEST, &arena, err);              \
    return r < 0 ? r : call_result(&with, __VA_ARGS__, err)

#define DEFINE_UNARY(function, type, is_local)                                                     \
    static int function##_call(const struct call *call, const json_t *json, struct err *err)       \
    {                                                                                              \
        CALL(type, is_local, function(&with, &request, err));                                      \
    }
#define DEFINE_STREAM(function, type, is_local)                                                    \
    static int function##_call(const struct call *call, const json_t *json, struct stream **ret,   \
                               struct err *err)                                                    \
    {                                                                                              \
        CALL(type, is_local, function(&with, &request, ret, err));                                 \
    }
#define DEFINE_UPLOAD(function, type, is_local)                                                    \
    static int function##_call(const struct call *call, const json_t *json, struct upload **ret,   \
                               struct err *err)                                                    \
    {                                                                                              \
        CALL(type, is_local, function(&with, &request, ret, err));                                 \
    }
#define DEFINE(kind, path, function, request, response, is_read_only, is_raw, is_large, is_local,  \
               ...)                                                                                \
    DEFINE_##kind(function, request, is_local)

MSG_METHODS(DEFINE)

#define ROUTE_UNARY(function) .unary = function##_call
#define ROUTE_STREAM(function) .stream = function##_call
#define ROUTE_UPLOAD(function) .upload = function##_call
#define ROUTE(kind, method, function, request, response, reads, raw, large, local, admin)          \
    { .path = method,                                                                              \
      ROUTE_##kind(function),                                                                      \
      .can_be_raw = raw,                                                                           \
      .is_read_only = reads,                                                                       \
      .is_large = large,                                                                           \
      .is_admin = admin },

static const struct route routes[] = { MSG_METHODS(ROUTE) };

_Static_assert(ARRAY_SIZE(routes) <= ROUTES_MAX, "call_stats must have room for every method");

const struct route *route_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

const struct route *route_at(size_t index)
{
    return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}

size_t route_index(const struct route *route)
{
    return (size_t)(route - routes);
}
