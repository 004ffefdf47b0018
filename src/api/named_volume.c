// SPDX-License-Identifier: Apache-2.0
#include "api/named_volume.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/core/metadata.h"
#include "e2b/core/object_store.h"
#include "host/observe/event.h"
#include "host/sandbox/info.h"
#include "host/sandbox/mount.h"
#include "host/volume/shared_volume.h"

enum { NAME_MAX_BYTES = 128 };

static const char *id_of(const json_t *stored)
{
    return json_string_value(json_object_get(stored, "id"));
}

static void tell(struct host *host, enum event_type type, const json_t *stored)
{
    host_event(host, type,
               json_pack("{s:O, s:O}", "volume", json_object_get(stored, "id"), "name",
                         json_object_get(stored, "name")));
}

/* Its name comes first: a daemon that dies in between leaves nothing that nobody can remove. */
static int make(struct host *host, struct e2b_objects *objects, const json_t *stored,
                struct err *err)
{
    struct err ignored;
    int r = e2b_objects_put(objects, OBJECTS_VOLUMES, stored, "name", err);

    if (r < 0)
        return r;
    r = shared_volume_create(host, id_of(stored), err);
    if (r < 0)
        (void)e2b_objects_remove(objects, OBJECTS_VOLUMES, id_of(stored), &ignored);
    return r;
}

/* Who sees the name before there are files finds the volume as if it were doomed: a removal would
 * meet nothing, and leave what is made then to nobody. */
int named_volume_create(struct host *host, struct e2b_objects *objects, const char *name,
                        json_t **ret, struct err *err)
{
    cleanup_json json_t *stored = NULL;
    char token[E2B_TOKEN_SIZE], id[32];
    struct shared_volume_removal removal = { .shared_volume = id };
    int r;

    if (!name || !is_handle(name, NAME_MAX_BYTES))
        return err_set(err, ERR_INVALID, "name must be 1 to %d letters, digits, '.', '_' or '-'",
                       NAME_MAX_BYTES);
    r = e2b_token_make(token, err);
    (void)snprintf(id, sizeof(id), "vol%.20s", r == 0 ? token : "");
    if (r == 0)
        r = e2b_token_make(token, err);
    if (r < 0)
        return r;
    stored = json_pack("{s:s, s:s, s:s}", "id", id, "name", name, "token", token);
    r = shared_volume_removal_begin(host, &removal, err);
    if (r < 0)
        return r;
    r = make(host, objects, stored, err);
    shared_volume_removal_end(host, &removal);
    if (r < 0)
        return r;
    tell(host, EVENT_VOLUME_CREATED, stored);
    *ret = TAKE_PTR(stored);
    return 0;
}

int named_volume_find(struct e2b_objects *objects, const char *word, json_t **ret, struct err *err)
{
    json_t *stored = e2b_objects_find(objects, OBJECTS_VOLUMES, "id", word);

    if (!stored)
        stored = e2b_objects_find(objects, OBJECTS_VOLUMES, "name", word);
    if (!stored)
        return err_set(err, ERR_NOT_FOUND, "volume '%.100s' not found", word);
    *ret = stored;
    return 0;
}

/* Its files go first: what is not on the object store is never looked for again. */
int named_volume_remove(struct host *host, struct e2b_objects *objects, const char *word,
                        struct err *err)
{
    cleanup_json json_t *stored = NULL;
    int r = named_volume_find(objects, word, &stored, err);

    if (r == 0)
        r = shared_volume_destroy(host, id_of(stored), err);
    if (r == 0)
        r = e2b_objects_remove(objects, OBJECTS_VOLUMES, id_of(stored), err);
    if (r == 0)
        tell(host, EVENT_VOLUME_REMOVED, stored);
    return r;
}

int named_volume_mount(struct e2b_objects *objects, const char *word, const char *path,
                       struct sandbox_mount *ret, struct err *err)
{
    cleanup_json json_t *stored = NULL;
    int r = named_volume_find(objects, word, &stored, err);

    return r == 0 ? sandbox_mount_init(ret, id_of(stored), path, err) : r;
}
