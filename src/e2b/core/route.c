// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"

/* A new file of routes needs a line here. */
static const struct e2b_routes *const control_tables[] = {
    &e2b_tag_routes,
    &e2b_upload_routes,
    &e2b_template_routes,
    &e2b_template_build_routes,
    &e2b_list_routes,
    &e2b_metrics_routes,
    &e2b_log_routes,
    &e2b_snapshot_routes,
    &e2b_fork_routes,
    &e2b_team_routes,
    &e2b_secret_routes,
    &e2b_volume_routes,
    &e2b_volume_content_routes,
    &e2b_sandbox_routes,
};

static const struct e2b_routes *const envd_tables[] = {
    &e2b_envd_routes,
    &e2b_method_routes,
    &e2b_files_routes,
};

static const struct e2b_routes *const port_tables[] = { &e2b_port_routes };

static const struct place {
    const char *name;
    const struct e2b_routes *const *tables;
    size_t count;
} control = { "control", control_tables, ARRAY_SIZE(control_tables) },
  envd = { "envd", envd_tables, ARRAY_SIZE(envd_tables) },
  port = { "port", port_tables, ARRAY_SIZE(port_tables) };

static const struct place *const places[] = { &control, &envd, &port };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* An invalid escape is kept as it is, as in most decoders. */
char *e2b_unescape(const char *text, size_t len, bool plus)
{
    cleanup_free char *out = xcalloc(len + 1, 1);
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[used++] = c;
    }
    out[used] = '\0';
    if (utf8_valid(out, used) != used)
        return NULL;
    return TAKE_PTR(out);
}

static void params_drop(struct e2b_request *request)
{
    for (size_t i = 0; i < E2B_PARAMS_MAX; i++) {
        free(request->params[i]);
        request->params[i] = NULL;
    }
}

static bool param_take(struct e2b_request *request, size_t *count, const char *text, size_t len)
{
    if (len == 0 || *count == E2B_PARAMS_MAX)
        return false;
    request->params[*count] = e2b_unescape(text, len, false);
    return request->params[(*count)++] != NULL;
}

/* Segment by segment. */
static bool path_fits(struct e2b_request *request, const char *pattern)
{
    const char *path = request->path;
    size_t count = 0;

    while (*pattern == '/' && *path == '/') {
        size_t want = strcspn(++pattern, "/"), have = strcspn(++path, "/");

        if (strcmp(pattern, "*") == 0)
            return param_take(request, &count, path, strlen(path)) || *path == '\0';
        if (want == 2 && strncmp(pattern, "{}", want) == 0) {
            if (!param_take(request, &count, path, have))
                return false;
        } else if (want != have || strncmp(pattern, path, want) != 0) {
            return false;
        }
        pattern += want;
        path += have;
    }
    return *pattern == '\0' && *path == '\0';
}

static bool verb_fits(const struct e2b_request *request, const struct e2b_route *route)
{
    return strcmp(route->verb, "*") == 0 || strcmp(route->verb, request->verb) == 0 ||
           (strcmp(route->verb, "GET") == 0 && strcmp(request->verb, "HEAD") == 0);
}

static const struct e2b_route *table_find(struct e2b_request *request,
                                          const struct e2b_routes *table, bool *ret_has_path)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct e2b_route *route = &table->routes[i];

        if (path_fits(request, route->path)) {
            if (verb_fits(request, route))
                return route;
            *ret_has_path = true;
        }
        params_drop(request);
    }
    return NULL;
}

static const struct place *place_of(enum e2b_kind kind)
{
    if (kind == E2B_PORT)
        return &port;
    return kind == E2B_ENVD || kind == E2B_SIGNED ? &envd : &control;
}

const struct e2b_route *e2b_route_find(struct e2b_request *request, bool *ret_has_path)
{
    const struct place *place = place_of(request->to.kind);
    const struct e2b_route *route = NULL;

    *ret_has_path = false;
    if (place == &port) /* paths of a server inside may be anything */
        return e2b_port_routes.routes;
    for (size_t i = 0; i < place->count && !route; i++)
        route = table_find(request, place->tables[i], ret_has_path);
    return route;
}

const struct e2b_route *e2b_route_at(size_t index, const char **ret_place)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        for (size_t j = 0; j < places[i]->count; j++) {
            const struct e2b_routes *table = places[i]->tables[j];

            if (index < table->count) {
                *ret_place = places[i]->name;
                return &table->routes[index];
            }
            index -= table->count;
        }
    return NULL;
}

size_t e2b_route_index(const struct e2b_route *route)
{
    const char *ignored;
    size_t index = 0;

    while (e2b_route_at(index, &ignored) != route)
        index++;
    return index;
}
