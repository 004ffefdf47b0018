// SPDX-License-Identifier: Apache-2.0
#include "api/route.h"

#include <string.h>

#include "base/cleanup.h"

static const struct route routes[] = {
    { "/holt.v1.SandboxService/Run", .stream = sandbox_service_run },
    { "/holt.v1.ProcessService/SendInput", .unary = process_service_send_input },
    { "/holt.v1.ProcessService/Signal", .unary = process_service_signal },
    { "/holt.v1.ProcessService/Resize", .unary = process_service_resize },
    { "/holt.v1.TemplateService/Import", .stream = template_service_import },
    { "/holt.v1.TemplateService/List", .unary = template_service_list },
    { "/holt.v1.TemplateService/Remove", .unary = template_service_remove },
    { "/holt.v1.HostService/Health", .unary = host_service_health },
};

const struct route *route_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}
