// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/target.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"

/* First segments of the control API's paths. */
static const char *const control_paths[] = {
    "/sandboxes", "/snapshots", "/templates", "/teams", "/secrets", "/volumes",  "/v2",
    "/v3",        "/health",    "/api-keys",  "/nodes", "/events",  "/webhooks", "/volumecontent",
};

static bool is_below(const char *path, const char *first)
{
    size_t len = strlen(first);

    return strncmp(path, first, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_control(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(control_paths); i++)
        if (is_below(path, control_paths[i]))
            return true;
    return false;
}

static bool is_id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Returns the length of the id at the start of text; 0: none. */
static size_t id_length(const char *text)
{
    size_t len = 0;

    while (is_id_char(text[len]))
        len++;
    return len < SANDBOX_ID_MAX ? len : 0;
}

/* Skips the client id that SDKs before 2.0 append to an id of a sandbox, as E2B does. */
static const char *client_id_skip(const char *text)
{
    static const char suffix[] = "-" E2B_CLIENT_ID;
    size_t len = strlen(suffix);

    return strncmp(text, suffix, len) == 0 && !is_id_char(text[len]) ? text + len : text;
}

static bool port_parse(const char *text, size_t len, uint16_t *ret)
{
    char digits[6];
    uint64_t number;

    if (len == 0 || len >= sizeof(digits))
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)len, text);
    if (strspn(digits, "0123456789") != len || parse_u64(digits, &number) < 0 || number == 0 ||
        number > UINT16_MAX)
        return false;
    *ret = (uint16_t)number;
    return true;
}

const char *e2b_host_parse(const char *host, uint16_t *ret_port, char ret_sandbox[SANDBOX_ID_MAX])
{
    size_t digits = strspn(host, "0123456789"), len;
    const char *rest;

    if (host[digits] != '-' || !port_parse(host, digits, ret_port))
        return NULL;
    host += digits + 1;
    len = id_length(host);
    rest = client_id_skip(host + len);
    if (len == 0 || *rest != '.')
        return NULL;
    (void)snprintf(ret_sandbox, SANDBOX_ID_MAX, "%.*s", (int)len, host);
    return rest + 1;
}

static enum e2b_kind kind_of_port(uint16_t port)
{
    return port == E2B_ENVD_PORT ? E2B_ENVD : E2B_PORT;
}

static bool target_by_header(const struct e2b_request_headers *headers, struct e2b_target *ret)
{
    const char *id = headers->sandbox_header;
    size_t len = id_length(id);

    ret->port = E2B_ENVD_PORT;
    if (headers->port_header &&
        !port_parse(headers->port_header, strlen(headers->port_header), &ret->port))
        return false;
    ret->kind = kind_of_port(ret->port);
    /* A malformed id stays empty, and is answered like an unknown one. */
    if (*client_id_skip(id + len) == '\0')
        (void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%.*s", (int)len, id);
    return true;
}

bool e2b_target_find(const struct e2b_request_headers *headers, struct e2b_target *ret)
{
    *ret = (struct e2b_target){ .kind = E2B_NONE };
    if (headers->sandbox_header)
        return target_by_header(headers, ret);
    if (headers->host && e2b_host_parse(headers->host, &ret->port, ret->sandbox)) {
        ret->kind = kind_of_port(ret->port);
    } else if (strcmp(headers->path, "/files") == 0 && headers->has_signature) {
        ret->kind = E2B_SIGNED;
        ret->port = E2B_ENVD_PORT;
    } else if (is_control(headers->path) || headers->has_key) {
        ret->kind = E2B_CONTROL;
    }
    return true;
}

#define HOLT_PREFIX "sb-"
#define E2B_PREFIX "sb"

bool e2b_id_from(const char *holt, char ret[SANDBOX_ID_MAX])
{
    const char *rest = holt + strlen(HOLT_PREFIX);

    if (strncmp(holt, HOLT_PREFIX, strlen(HOLT_PREFIX)) != 0 || id_length(rest) == 0 ||
        rest[id_length(rest)] != '\0')
        return false;
    (void)snprintf(ret, SANDBOX_ID_MAX, E2B_PREFIX "%s", rest);
    return true;
}

bool e2b_id_to(const char *e2b, char ret[SANDBOX_ID_MAX])
{
    const char *rest = e2b + strlen(E2B_PREFIX);
    size_t len;

    if (strncmp(e2b, E2B_PREFIX, strlen(E2B_PREFIX)) != 0)
        return false;
    len = id_length(rest);
    if (len == 0 || *client_id_skip(rest + len) != '\0' ||
        len + strlen(HOLT_PREFIX) >= SANDBOX_ID_MAX)
        return false;
    (void)snprintf(ret, SANDBOX_ID_MAX, HOLT_PREFIX "%.*s", (int)len, rest);
    return true;
}
