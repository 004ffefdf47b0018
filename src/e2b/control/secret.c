// SPDX-License-Identifier: Apache-2.0
/* The control API: secrets. Values are stored sealed and never returned. network.rules name them.
 */
#include "e2b/control/secret.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/object_owner.h"
#include "e2b/core/object_store.h"
#include "e2b/core/page.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/secret/grant.h"
#include "host/secret/secret.h"
#include "http/exchange.h"

#define ID_PREFIX "sec_"

enum { NAME_MAX_BYTES = 128, VALUE_MAX_BYTES = 64 * 1024 };

static struct e2b_objects *objects_of(const struct e2b_request *request)
{
    return request->e2b->objects;
}

static json_t *secret_json(const json_t *stored)
{
    uint64_t created_ms = (uint64_t)json_integer_value(json_object_get(stored, "createdMs"));
    uint64_t updated_ms = (uint64_t)json_integer_value(json_object_get(stored, "updatedMs"));

    return json_pack("{s:O, s:O, s:O, s:O, s:o, s:o}", "secretID", json_object_get(stored, "id"),
                     "name", json_object_get(stored, "name"), "currentVersion",
                     json_object_get(stored, "version"), "metadata",
                     json_object_get(stored, "metadata"), "createdAt", e2b_time_json(created_ms),
                     "updatedAt", e2b_time_json(updated_ms));
}

/* By id or name. */
static json_t *pick(const struct e2b_request *request, const json_t *list)
{
    const struct caller *caller = &request->exchange->caller;
    json_t *stored = e2b_object_pick(list, caller, "id", request->params[0]);

    return stored ? stored : e2b_object_pick(list, caller, "name", request->params[0]);
}

static int refuse_missing(const struct e2b_request *request, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "secret '%.100s' not found", request->params[0]);
}

static int find(const struct e2b_request *request, json_t **ret, struct err *err)
{
    cleanup_json json_t *all = e2b_objects_list(objects_of(request), OBJECTS_SECRETS);

    *ret = json_incref(pick(request, all));
    return *ret ? 0 : refuse_missing(request, err);
}

static char *seal_context(const json_t *stored)
{
    return xasprintf("holt e2b secret 1 %s", json_string_value(json_object_get(stored, "id")));
}

int e2b_secret_value(void *context, const char *owner, const char *id, struct secret_value *ret,
                     struct err *err)
{
    struct e2b *e2b = context;
    cleanup_json json_t *stored = e2b_objects_find(e2b->objects, OBJECTS_SECRETS, "id", id);
    const char *sealed = json_string_value(json_object_get(stored, "sealed"));
    cleanup_free char *belongs_to = NULL;

    if (!sealed || strcmp(e2b_object_owner(stored), owner) != 0)
        return err_set(err, ERR_NOT_FOUND, "secret '%.100s' not found", id);
    belongs_to = seal_context(stored);
    return secrets_open_text(host_secrets(e2b->host), belongs_to, sealed, ret, err);
}

void e2b_secrets_recover(struct host *host, struct e2b_objects *objects)
{
    cleanup_json json_t *all = e2b_objects_list(objects, OBJECTS_SECRETS);
    const json_t *stored;
    size_t i;

    json_array_foreach(all, i, stored) {
        if (json_object_get(stored, "sealed"))
            secrets_expect_key(host_secrets(host));
    }
}

/* Replaces the value, which is on disk only as it is sealed. */
static int value_set(const struct e2b_request *request, json_t *stored, const char *value,
                     struct err *err)
{
    cleanup_free char *context = NULL, *sealed = NULL;
    int r;

    context = seal_context(stored);
    r = secrets_seal_text(host_secrets(request->e2b->host), context, value, &sealed, err);
    if (r < 0)
        return r;
    (void)json_object_del(stored, "value"); /* of an earlier version of Holt */
    return json_object_set_new(stored, "sealed", json_string(sealed));
}

/* The value and the metadata of a new version. */
static int version_take(const struct e2b_request *request, json_t *stored, struct err *err)
{
    const json_t *body = request->body;
    const char *value = NULL, *key;
    const json_t *metadata = NULL;
    json_t *each;
    int r = json_get_text(body, "value", &value, err);

    if (r == 0)
        r = json_get_object(body, "metadata", &metadata, err);
    if (r < 0)
        return r;
    if (!value || strlen(value) > VALUE_MAX_BYTES)
        return err_set(err, ERR_INVALID, "value must be a text of at most %d bytes",
                       VALUE_MAX_BYTES);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, each) {
        if (!json_is_string(each))
            return err_set(err, ERR_INVALID, "metadata must have texts as values");
    }
    r = value_set(request, stored, value, err);
    if (r < 0)
        return r;
    if (metadata)
        (void)json_object_set(stored, "metadata", (json_t *)(uintptr_t)metadata);
    return json_object_set_new(stored, "updatedMs", json_integer((json_int_t)clock_wall_ms()));
}

/* Lower-case, as E2B keeps them. */
static int name_take(const json_t *body, json_t *stored, struct err *err)
{
    const char *given = NULL;
    cleanup_free char *name = NULL;
    int r = json_get_text(body, "name", &given, err);

    if (r < 0)
        return r;
    name = xstrdup(given ? given : "");
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (!is_handle(name, NAME_MAX_BYTES) || strncmp(name, ID_PREFIX, strlen(ID_PREFIX)) == 0)
        return err_set(err, ERR_INVALID,
                       "name must be 1 to %d letters, digits, '.', '_' or '-', not beginning with "
                       "'" ID_PREFIX "'",
                       NAME_MAX_BYTES);
    return json_object_set_new(stored, "name", json_string(name));
}

static enum MHD_Result create(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    char token[E2B_TOKEN_SIZE], id[sizeof(ID_PREFIX) + 20];
    struct err err = { 0 };

    if (e2b_token_make(token, &err) < 0)
        return e2b_reply_err(request, &err);
    (void)snprintf(id, sizeof(id), ID_PREFIX "%.20s", token);
    stored = json_pack("{s:s, s:i, s:{}, s:I}", "id", id, "version", 1, "metadata", "createdMs",
                       (json_int_t)clock_wall_ms());
    e2b_object_own(stored, &request->exchange->caller);
    if (name_take(request->body, stored, &err) < 0 || version_take(request, stored, &err) < 0 ||
        e2b_objects_put(objects_of(request), OBJECTS_SECRETS, stored, "name", &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_CREATED, secret_json(stored));
}

static enum MHD_Result get(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    struct err err = { 0 };

    if (find(request, &stored, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK, secret_json(stored));
}

/* Adds a version of a secret; concurrent updates are all kept. */
struct update {
    const struct e2b_request *request;
    json_t *stored; /* the result */
};

static int update_in(json_t *list, void *context, struct err *err)
{
    struct update *update = context;
    json_t *stored = pick(update->request, list);
    json_int_t version = json_integer_value(json_object_get(stored, "version")) + 1;
    int r =
        stored ? version_take(update->request, stored, err) : refuse_missing(update->request, err);

    if (r == 0)
        r = json_object_set_new(stored, "version", json_integer(version));
    if (r == 0)
        update->stored = json_deep_copy(stored); /* the list is valid only under the lock */
    return r;
}

/* Running sandboxes have the new value when the client has its answer. */
static enum MHD_Result update_answer(struct e2b_request *request, const json_t *stored)
{
    secret_grants_apply(request->e2b->host);
    return e2b_reply_json(request, MHD_HTTP_OK, secret_json(stored));
}

static enum MHD_Result update(struct e2b_request *request)
{
    struct update update = { .request = request };
    struct err err = { 0 };
    enum MHD_Result result;

    if (e2b_objects_change(objects_of(request), OBJECTS_SECRETS, update_in, &update, &err) < 0)
        result = e2b_reply_err(request, &err);
    else
        result = update_answer(request, update.stored);
    json_decref(update.stored);
    return result;
}

static enum MHD_Result remove_it(struct e2b_request *request)
{
    cleanup_json json_t *stored = NULL;
    struct err err = { 0 };

    if (find(request, &stored, &err) < 0 ||
        e2b_objects_remove(objects_of(request), OBJECTS_SECRETS,
                           json_string_value(json_object_get(stored, "id")), &err) < 0)
        return e2b_reply_err(request, &err);
    secret_grants_apply(request->e2b->host);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static json_t *item_json(const json_t *stored, const void *context)
{
    return e2b_object_is_seen(stored, context) ? secret_json(stored) : NULL;
}

static enum MHD_Result list(struct e2b_request *request)
{
    cleanup_json json_t *all = e2b_objects_list(objects_of(request), OBJECTS_SECRETS);
    struct e2b_page page;
    struct err err = { 0 };

    if (e2b_page_parse(request, &page, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(
        request, MHD_HTTP_OK,
        e2b_page_list(request, &page, all, false, item_json, &request->exchange->caller));
}

static const struct e2b_route routes[] = {
    { "POST", "/secrets", .answer = create },         { "GET", "/secrets", .answer = list },
    { "GET", "/secrets/{}", .answer = get },          { "POST", "/secrets/{}", .answer = update },
    { "DELETE", "/secrets/{}", .answer = remove_it },
};

const struct e2b_routes e2b_secret_routes = { routes, ARRAY_SIZE(routes) };
