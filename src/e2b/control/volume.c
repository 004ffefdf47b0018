// SPDX-License-Identifier: Apache-2.0
/* The control API: volumes. */
#include "e2b/control/volume.h"

#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/control/volume_internal.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/object_store.h"
#include "host/sandbox/info.h"
#include "host/sandbox/mount.h"
#include "host/volume/named_volume.h"
#include "http/exchange.h"

static struct e2b_objects *objects_of(const struct e2b_request *request)
{
    return request->e2b->objects;
}

static const struct caller *caller_of(const struct e2b_request *request)
{
    return &request->exchange->caller;
}

/* The token permits writes: only the owner gets it. */
static json_t *volume_json(const struct e2b_request *request, const struct volume_info *info,
                           bool has_token)
{
    bool may_write = !request->is_read_only && named_volume_is_own(info, caller_of(request));

    return json_pack("{s:s, s:s, s:s*}", "volumeID", info->id, "name", info->name, "token",
                     has_token && may_write ? info->token : NULL);
}

static enum MHD_Result volume_post(struct e2b_request *request)
{
    struct volume_info info;
    const char *name = NULL;
    struct err err = { 0 };

    if (json_get_text(request->body, "name", &name, &err) < 0 ||
        named_volume_create(request->host, caller_of(request), name, &info, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_CREATED, volume_json(request, &info, true));
}

static enum MHD_Result volume_get(struct e2b_request *request)
{
    struct volume_info info;
    struct err err = { 0 };

    if (named_volume_find(request->host, caller_of(request), request->params[0], &info, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK, volume_json(request, &info, true));
}

static enum MHD_Result volumes_get(struct e2b_request *request)
{
    cleanup_free struct volume_info *infos = NULL;
    json_t *array;
    size_t count = 0;
    struct err err = { 0 };

    if (named_volume_list(request->host, caller_of(request), &infos, &count, &err) < 0)
        return e2b_reply_err(request, &err);
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, volume_json(request, &infos[i], false));
    return e2b_reply_json(request, MHD_HTTP_OK, array);
}

static enum MHD_Result volume_delete(struct e2b_request *request)
{
    struct err err = { 0 };

    if (named_volume_remove(request->host, caller_of(request), request->params[0], &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

/* Only the id names a volume here, not its name. */
bool e2b_volume_opens(const struct e2b_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *shown = e2b_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    struct volume_info info;
    struct err ignored;

    if (!shown || strncasecmp(shown, scheme, strlen(scheme)) != 0 ||
        named_volume_get(request->host, request->params[0], &info, &ignored) < 0)
        return false;
    shown += strlen(scheme);
    return strlen(shown) == strlen(info.token) &&
           CRYPTO_memcmp(shown, info.token, strlen(info.token)) == 0;
}

/* --- in sandboxes ----------------------------------------------------------------------------- */

void e2b_volume_remember(struct sandbox *sandbox, json_t *snapshot)
{
    cleanup_json json_t *metadata = e2b_metadata_read(sandbox);
    json_t *mounts = json_object_get(metadata, "volumeMounts");

    if (mounts)
        (void)json_object_set(snapshot, "volumeMounts", mounts);
}

/* Returns the mounts of a snapshot, without volumes that no longer exist. */
static json_t *snapshot_mounts(const struct e2b_request *request, const char *template)
{
    cleanup_json json_t *snapshot =
        e2b_objects_find(objects_of(request), OBJECTS_SNAPSHOTS, "id", template);
    json_t *mounts = json_array(), *mount;
    size_t index;

    json_array_foreach(json_object_get(snapshot, "volumeMounts"), index, mount) {
        const char *name = json_string_value(json_object_get(mount, "name"));
        struct volume_info info;
        struct err ignored;

        if (name &&
            named_volume_find(request->host, caller_of(request), name, &info, &ignored) == 0)
            (void)json_array_append(mounts, mount);
    }
    return mounts;
}

int e2b_volume_mounts(const struct e2b_request *request, const char *template, json_t *metadata,
                      struct sandbox_mount *ret, size_t *ret_count, struct err *err)
{
    json_t *mount;
    size_t index;

    if (!json_object_get(metadata, "volumeMounts"))
        (void)json_object_set_new(metadata, "volumeMounts", snapshot_mounts(request, template));
    json_array_foreach(json_object_get(metadata, "volumeMounts"), index, mount) {
        const char *name = json_string_value(json_object_get(mount, "name"));
        const char *path = json_string_value(json_object_get(mount, "path"));
        const struct named_mount wanted = { .volume = name, .path = path, .adapts = true };
        int r = named_volume_mount(request->host, caller_of(request), &wanted, &ret[index], err);

        if (r < 0)
            return r;
    }
    *ret_count = json_array_size(json_object_get(metadata, "volumeMounts"));
    return sandbox_mounts_check(ret, *ret_count, err);
}

static const struct e2b_route routes[] = {
    { "POST", "/volumes", .answer = volume_post },
    { "GET", "/volumes", .answer = volumes_get },
    { "GET", "/volumes/{}", .answer = volume_get },
    { "DELETE", "/volumes/{}", .answer = volume_delete },
};

const struct e2b_routes e2b_volume_routes = { routes, ARRAY_SIZE(routes) };
