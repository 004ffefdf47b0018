// SPDX-License-Identifier: Apache-2.0
/* Headers of requests as raw bytes: whatever the framing check accepts, a strict parser that shares
 * no code with libmicrohttpd accepts too. */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "unit/http/framed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libmicrohttpd overwrites line ends and colons with NUL; see framing.c. */
static size_t overwritten(const char *at, const char *end, const char *with)
{
    const char *start = at;

    while (at < end && (*at == '\0' || strchr(with, *at)))
        at++;
    return (size_t)(at - start);
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_value_byte(char c)
{
    return ((unsigned char)c >= ' ' || c == '\t') && c != 0x7f;
}

/* Whether the bytes begin with a header whose fields another parser cannot read differently. */
static bool is_strict(const char *at, const char *end)
{
    while (at < end && is_value_byte(*at))
        at++;
    for (;;) {
        const char *name = at + 2;

        if (overwritten(at, end, "\r\n:") >= 4)
            return true;
        if (overwritten(at, end, "\r\n") < 2)
            return false;
        for (at = name; at < end && is_name_byte(*at);)
            at++;
        if (at == name || at == end || *at != ':')
            return false;
        while (at < end && is_value_byte(*at))
            at++;
    }
}

/* libmicrohttpd skips lines in front of a request that are empty as C strings. */
static const char *request_start(const char *at, const char *end)
{
    while (at < end && overwritten(at, end, "\r\n") > 0)
        while (at < end && *at++ != '\n')
            ;
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;

    if (size > 30000)
        return 0;
    framed_send(bytes, size, NULL, 0);
    assert(!framed.is_seen || framed.refusal ||
           is_strict(request_start(bytes, bytes + size), bytes + size));
    return 0;
}
