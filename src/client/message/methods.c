// SPDX-License-Identifier: Apache-2.0
#include "client/message/methods.h"

#define METHOD_DEFINE(kind, path_text, function, request_type, reply_type, ...)                    \
    const struct client_method method_##function = { (path_text) + 1, &request_type##_schema,      \
                                                     &reply_type##_schema };
MSG_METHODS(METHOD_DEFINE)
