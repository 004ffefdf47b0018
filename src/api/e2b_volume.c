// SPDX-License-Identifier: Apache-2.0
/* The control API: volumes and, with a token of each, their content. They are not mounted in
 * sandboxes so far. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/e2b.h"
#include "api/e2b_note.h"
#include "api/e2b_sandbox_json.h"
#include "api/e2b_shelf.h"
#include "api/e2b_volume_internal.h"
#include "api/exchange.h"
#include "api/exchange_internal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/parse.h"
#include "host/depot.h"

enum { NAME_MAX_BYTES = 128 };

static struct e2b_shelf *shelf_of(const struct e2b_request *request)
{
    return request->exchange->listener->shelf;
}

/* By id or name. */
static int find(const struct e2b_request *request, json_t **ret, struct err *err)
{
    const char *word = request->params[0];

    *ret = e2b_shelf_find(shelf_of(request), SHELF_VOLUMES, "id", word);
    if (!*ret)
        *ret = e2b_shelf_find(shelf_of(request), SHELF_VOLUMES, "name", word);
    return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "volume '%.100s' not found", word);
}

static json_t *volume_json(const struct e2b_request *request, const json_t *stored, bool has_token)
{
    json_t *token = has_token && !request->only_looks ? json_object_get(stored, "token") : NULL;

    return json_pack("{s:O, s:O, s:O*}", "volumeID", json_object_get(stored, "id"), "name",
                     json_object_get(stored, "name"), "token", token);
}

static enum MHD_Result create(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    char token[E2B_TOKEN_SIZE], id[32];
    const char *name = NULL;
    struct err err = { 0 }, ignored;

    if (json_get_text(request->body, "name", &name, &err) < 0 || e2b_token_make(token, &err) < 0)
        return e2b_reply_err(request, &err);
    if (!name || !is_handle(name, NAME_MAX_BYTES))
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST,
                               "name must be 1 to %d letters, digits, '.', '_' or '-'",
                               NAME_MAX_BYTES);
    (void)snprintf(id, sizeof(id), "vol%.20s", token);
    if (e2b_token_make(token, &err) < 0)
        return e2b_reply_err(request, &err);
    stored = json_pack("{s:s, s:s, s:s}", "id", id, "name", name, "token", token);
    if (depot_create(request->host, id, &err) < 0)
        return e2b_reply_err(request, &err);
    if (e2b_shelf_put(shelf_of(request), SHELF_VOLUMES, stored, "name", &err) < 0) {
        (void)depot_destroy(request->host, id, &ignored);
        return e2b_reply_err(request, &err);
    }
    return e2b_reply_json(request, MHD_HTTP_CREATED, volume_json(request, stored, true));
}

static enum MHD_Result get(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    struct err err = { 0 };

    if (find(request, &stored, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK, volume_json(request, stored, true));
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *all = e2b_shelf_list(shelf_of(request), SHELF_VOLUMES);
    json_t *array = json_array();
    size_t index;
    json_t *stored;

    json_array_foreach(all, index, stored)
    {
        (void)json_array_append_new(array, volume_json(request, stored, false));
    }
    return e2b_reply_json(request, MHD_HTTP_OK, array);
}

/* Its files go first: what is not on the shelf is never looked for again. */
static enum MHD_Result delete (struct e2b_request *request) {
    cleanup_json json_t *stored = NULL; const char * id; struct err err = { 0 };

    if (find(request, &stored, &err) < 0) return e2b_reply_err(request, &err);
    id = json_string_value(json_object_get(stored, "id"));
    if (depot_destroy(request->host, id, &err) < 0 ||
        e2b_shelf_remove(shelf_of(request), SHELF_VOLUMES, id, &err) <
            0) return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

bool e2b_volume_opens(const struct e2b_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *shown = e2b_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    cleanup_json json_t *stored =
        e2b_shelf_find(shelf_of(request), SHELF_VOLUMES, "id", request->params[0]);
    const char *wanted = json_string_value(json_object_get(stored, "token"));

    if (!wanted || !shown || strncasecmp(shown, scheme, strlen(scheme)) != 0)
        return false;
    shown += strlen(scheme);
    return strlen(shown) == strlen(wanted) && CRYPTO_memcmp(shown, wanted, strlen(wanted)) == 0;
}

static const struct e2b_route routes[] = {
    { "POST", "/volumes", .answer = create },
    { "GET", "/volumes", .answer = list },
    { "GET", "/volumes/{}", .answer = get },
    { "DELETE", "/volumes/{}", .answer = delete },
};

const struct e2b_routes e2b_volume_routes = { routes, ARRAY_SIZE(routes) };
