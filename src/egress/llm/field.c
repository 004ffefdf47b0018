// SPDX-License-Identifier: Apache-2.0
/* Which fields of requests and replies pass the gateway. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "egress/llm/exchange.h"

/* Servers that put fields into variables read an underscore as a hyphen. */
static void name_normalize(const char *name, char ret[LLM_FIELD_SIZE])
{
    size_t i;

    for (i = 0; name[i] && i < LLM_FIELD_SIZE - 1; i++)
        ret[i] = (char)(name[i] == '_' ? '-' : tolower((unsigned char)name[i]));
    ret[i] = '\0';
}

bool llm_request_field_passes(const char *name)
{
    static const char forwarded[] = "x-forwarded-";
    static const char *const dropped[] = {
        "host",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "content-type",
        "content-encoding",
        "authorization",
        "x-api-key",
        "api-key",
        "openai-organization",
        "openai-project",
        "cookie",
        "accept-encoding",
        "expect",
        "upgrade",
        "te",
        "trailer",
        "proxy-connection",
        "proxy-authorization",
        "forwarded",
        "via",
        "x-http-method-override",
    };
    char plain[LLM_FIELD_SIZE];

    name_normalize(name, plain);
    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
        if (strcmp(plain, dropped[i]) == 0)
            return false;
    return strncmp(plain, forwarded, sizeof(forwarded) - 1) != 0;
}

bool llm_reply_field_passes(const char *name)
{
    static const char *const dropped[] = {
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "trailer",
        "upgrade",
        "proxy-authenticate",
        "set-cookie",
        "alt-svc",
        "strict-transport-security",
    };

    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
        if (strcasecmp(name, dropped[i]) == 0)
            return false;
    return true;
}
