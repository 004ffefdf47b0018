// SPDX-License-Identifier: Apache-2.0
#include "e2b/port/header.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "e2b/port/access.h"
#include "http/session.h"

#define PORT_WORD "${PORT}"

bool port_header_is_name(const char *name)
{
    if (!*name)
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name))
            return false;
    return true;
}

bool port_header_lists(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*(list += strspn(list, ", \t"))) {
        size_t each = strcspn(list, ", \t");

        if (each == len && strncasecmp(list, word, len) == 0)
            return true;
        list += each;
    }
    return false;
}

bool port_header_is_hop(const char *name)
{
    static const char *const names[] = {
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Returns whether the cookie of this name is one that opens Holt: no program behind a port may read
 * or set it. */
static bool is_own_cookie(const char *name, size_t len)
{
    static const char *const own[] = { PORT_TOKEN_COOKIE, PREVIEW_COOKIE, PREVIEW_COOKIE_TLS,
                                       SESSION_COOKIE, SESSION_COOKIE_TLS };

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (len == strlen(own[i]) && strncasecmp(name, own[i], len) == 0)
            return true;
    return false;
}

/* Writes a cookie without its attribute Domain. One without a name could be sent back as
 * "holt-token=...", so there must be one. */
static bool cookie_passes(const char *value, struct buf *out)
{
    const char *start = value + strspn(value, " \t");
    size_t name = strcspn(start, "=; \t");

    if (name == 0 || is_own_cookie(start, name) || start[name + strspn(start + name, " \t")] != '=')
        return false;
    while (*value) {
        size_t len = strcspn(value, ";") + 1;
        const char *word = value + strspn(value, " \t");
        size_t word_len = strcspn(word, "=; \t");

        if (value[len - 1] == '\0')
            len--;
        if (word < start + name || word_len != strlen("Domain") ||
            strncasecmp(word, "Domain", word_len) != 0)
            if (buf_add(out, value, len) < 0)
                return false;
        value += len;
    }
    return true;
}

bool port_header_passes(const char *name, const char *value, struct buf *out)
{
    buf_clear(out);
    if (strcasecmp(name, "Alt-Svc") == 0 || strcasecmp(name, "Clear-Site-Data") == 0)
        return false;
    if (strcasecmp(name, "Set-Cookie") == 0)
        return cookie_passes(value, out);
    return buf_add_str(out, value) == 0;
}

/* Whether some header Connection names it. The length and the host cannot be taken away so. */
static bool is_named(const struct port_request *request, const char *name)
{
    if (strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Host") == 0)
        return false;
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "Connection") == 0 &&
            port_header_lists(request->headers[i].value, name))
            return true;
    return false;
}

/* What only we are to know or have answered already: 100 Continue is said by us. */
static bool is_ours(const char *name)
{
    return strcasecmp(name, "Expect") == 0 || strcasecmp(name, "E2b-Traffic-Access-Token") == 0 ||
           strcasecmp(name, PORT_TOKEN_HEADER) == 0 || strcasecmp(name, SESSION_HEADER) == 0;
}

static bool stays(const struct port_request *request, const char *name)
{
    if (request->is_upgrade && strcasecmp(name, "Upgrade") == 0)
        return false;
    return port_header_is_hop(name) || is_ours(name) || is_named(request, name);
}

static bool is_value(const char *value)
{
    for (; *value; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

static bool is_target(const char *target)
{
    if (!*target)
        return false;
    for (; *target; target++)
        if ((unsigned char)*target <= ' ' || *target == 0x7f)
            return false;
    return true;
}

/* The name is written as servers expect it: some clients send it in lower case. */
static int add_host(const struct port_request *request, struct buf *out)
{
    const char *mask = request->mask_host, *word;
    int r = buf_add_str(out, "Host: ");

    if (!is_value(mask))
        return -EINVAL;
    while (r == 0 && (word = strstr(mask, PORT_WORD))) {
        r = buf_printf(out, "%.*s%u", (int)(word - mask), mask, request->port);
        mask = word + strlen(PORT_WORD);
    }
    return r < 0 ? r : buf_printf(out, "%s\r\n", mask);
}

/* Writes the cookies except our own; nothing if there is no other. */
static int add_cookies(const struct port_header *header, struct buf *out)
{
    const char *at = header->value;
    bool is_first = true;
    int r = 0;

    while (r == 0 && *(at += strspn(at, "; \t")) != '\0') {
        size_t len = strcspn(at, ";"), name = strcspn(at, "=; \t");

        if (!is_own_cookie(at, name)) {
            r = is_first ? buf_printf(out, "%s: ", header->name) : buf_add_str(out, "; ");
            if (r == 0)
                r = buf_add(out, at, len);
            is_first = false;
        }
        at += len;
    }
    return r < 0 || is_first ? r : buf_add_str(out, "\r\n");
}

static int add_header(const struct port_request *request, const struct port_header *header,
                      struct buf *out)
{
    if (stays(request, header->name))
        return 0;
    if (!port_header_is_name(header->name) || !is_value(header->value))
        return -EINVAL;
    if (request->mask_host && strcasecmp(header->name, "Host") == 0)
        return add_host(request, out);
    if (strcasecmp(header->name, "Cookie") == 0)
        return add_cookies(header, out);
    return buf_printf(out, "%s: %s\r\n", header->name, header->value);
}

/* Of a server that keeps connections open we would not know whether it has said all. */
int port_request_write(const struct port_request *request, struct buf *out)
{
    int r;

    if (!port_header_is_name(request->verb) || !is_target(request->target))
        return -EINVAL;
    r = buf_printf(out, "%s %s HTTP/1.1\r\n", request->verb, request->target);
    for (size_t i = 0; r == 0 && i < request->header_count; i++)
        r = add_header(request, &request->headers[i], out);
    if (r == 0 && request->is_chunked)
        r = buf_add_str(out, "Transfer-Encoding: chunked\r\n");
    if (r == 0)
        r = buf_add_str(out, request->is_upgrade ? "Connection: Upgrade\r\n\r\n"
                                                 : "Connection: close\r\n\r\n");
    return r;
}
