/* The methods of holt.v1, as the client calls them. */
#pragma once

#include "wire/holt_v1.h"

struct client_method {
    const char *path; /* "holt.v1.HostService/Health" */
    const struct schema *request;
    const struct schema *reply; /* one message of a stream */
};

/* A const struct client_method for each method: method_host_service_health, ... */
#define METHOD_DECLARE(kind, path, function, ...)                                                  \
    extern const struct client_method method_##function;
MSG_METHODS(METHOD_DECLARE)
#undef METHOD_DECLARE
