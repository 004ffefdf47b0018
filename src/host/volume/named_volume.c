// SPDX-License-Identifier: Apache-2.0
#include "host/volume/named_volume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "host/core/host_internal.h"
#include "host/core/recover.h"
#include "host/core/share.h"
#include "host/observe/audit_facts.h"
#include "host/observe/event.h"
#include "host/registry/registry.h"
#include "host/sandbox/info.h"
#include "host/sandbox/mount.h"
#include "host/volume/shared_volume.h"
#include "store/volume/plain.h"

enum { ID_BYTES = 10, TOKEN_BYTES = (VOLUME_TOKEN_SIZE - 1) / 2, OLD_FILE_MAX = 16 * 1024 * 1024 };

static const char old_file[] = "e2b-volumes.json";

static void event_send(struct host *host, enum event_type type, const struct volume_info *info)
{
    owner_event(host, info->owner, type,
                json_pack("{s:s, s:s}", "volume", info->id, "name", info->name));
}

static int info_init(struct volume_info *info, const char *owner, const char *name, struct err *err)
{
    char digits[HEX_SIZE(ID_BYTES)];

    if (!name || !is_handle(name, VOLUME_NAME_MAX))
        return err_set(err, ERR_INVALID, "name must be 1 to %d letters, digits, '.', '_' or '-'",
                       VOLUME_NAME_MAX);
    if (random_hex(digits, ID_BYTES) < 0 || random_hex(info->token, TOKEN_BYTES) < 0)
        return err_sys(err, -EIO, "get random bytes");
    (void)snprintf(info->id, sizeof(info->id), "vol%s", digits);
    (void)snprintf(info->owner, sizeof(info->owner), "%s", owner);
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    return 0;
}

/* The record comes first: a daemon killed in between leaves no files that cannot be removed. */
static int volume_make(struct host *host, const struct volume_info *info, struct err *err)
{
    struct err ignored;
    int r = registry_add_volume(host->registry, info, err);

    if (r < 0)
        return r;
    r = shared_volume_create(host, info->id, err);
    if (r < 0)
        (void)registry_remove_volume(host->registry, info->id, &ignored);
    return r;
}

/* Until its files exist the volume counts as being removed: a concurrent removal would find
 * nothing, and the files would stay without a record. */
int named_volume_create(struct host *host, const struct caller *caller, const char *name,
                        struct volume_info *ret, struct err *err)
{
    struct volume_info info = { .id = "" };
    struct shared_volume_removal removal = { .shared_volume = info.id };
    int r = info_init(&info, caller->owner, name, err);

    if (r == 0) /* volumes have no labels */
        r = caller_check_labels(caller, NULL, 0, err);
    if (r == 0)
        r = shared_volume_removal_begin(host, &removal, err);
    if (r < 0)
        return r;
    r = volume_make(host, &info, err);
    shared_volume_removal_end(host, &removal);
    if (r < 0)
        return r;
    event_send(host, EVENT_VOLUME_CREATED, &info);
    *ret = info;
    return 0;
}

bool named_volume_is_own(const struct volume_info *info, const struct caller *caller)
{
    return caller_sees(caller, info->owner, NULL, 0);
}

/* Moves the volumes that exist for the caller to the front. */
static int list_filter(struct host *host, const struct caller *caller, struct volume_info *list,
                       size_t *count, struct err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < *count; i++) {
        int r = named_volume_is_own(&list[i], caller) ||
                share_reaches(host, SHARE_VOLUME, list[i].id, caller, err);

        if (r < 0)
            return r;
        if (r > 0)
            list[kept++] = list[i];
    }
    *count = kept;
    return 0;
}

/* Chooses the volume that a word stands for: an id comes first, then a name of the caller's own,
 * then the only one. */
static const struct volume_info *list_choose(const struct volume_info *list, size_t count,
                                             const char *owner, const char *name)
{
    if (count > 0 && strcmp(list[0].id, name) == 0)
        return &list[0];
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].owner, owner) == 0)
            return &list[i];
    return count == 1 ? &list[0] : NULL;
}

static int volume_not_found(const char *word, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "volume '%.100s' not found", word);
}

int named_volume_find(struct host *host, const struct caller *caller, const char *word,
                      struct volume_info *ret, struct err *err)
{
    cleanup_free struct volume_info *list = NULL;
    const struct volume_info *found;
    struct share_word split;
    size_t count = 0;
    int r = 0;

    if (!share_word_split(word, caller, &split))
        return volume_not_found(word, err);
    r = registry_find_volumes(host->registry, split.name, &list, &count, err);
    if (r == 0)
        r = list_filter(host, caller, list, &count, err);
    if (r < 0)
        return r;
    found = list_choose(list, count, split.owner, split.name);
    if (split.has_owner && found && strcmp(found->owner, split.owner) != 0)
        found = NULL;
    if (!found && count > 1 && !split.has_owner)
        return err_set(err, ERR_INVALID, "'%.100s' stands for %zu volumes: write an id", word,
                       count);
    if (!found)
        return volume_not_found(word, err);
    *ret = *found;
    return 0;
}

int named_volume_get(struct host *host, const char *id, struct volume_info *ret, struct err *err)
{
    int r = named_volume_find(host, &caller_root, id, ret, err);

    return r == 0 && strcmp(ret->id, id) != 0 ? volume_not_found(id, err) : r;
}

int named_volume_find_own(struct host *host, const struct caller *caller, const char *word,
                          struct volume_info *ret, struct err *err)
{
    int r = named_volume_find(host, caller, word, ret, err);

    if (r == 0 && !named_volume_is_own(ret, caller))
        r = err_set(err, ERR_DENIED, "volume '%s' belongs to '%s', which shares it for reading",
                    ret->name, ret->owner);
    return r;
}

int named_volume_list(struct host *host, const struct caller *caller, struct volume_info **ret,
                      size_t *ret_count, struct err *err)
{
    cleanup_free struct volume_info *list = NULL;
    size_t count = 0;
    int r = registry_list_volumes(host->registry, &list, &count, err);

    if (r == 0)
        r = list_filter(host, caller, list, &count, err);
    if (r < 0)
        return r;
    *ret_count = count;
    *ret = TAKE_PTR(list);
    return 0;
}

/* The files go first: without a record nothing would ever remove them. */
int named_volume_remove(struct host *host, const struct caller *caller, const char *word,
                        struct err *err)
{
    struct volume_info info;
    int r = named_volume_find_own(host, caller, word, &info, err);

    if (r == 0)
        r = shared_volume_destroy(host, info.id, err);
    if (r < 0)
        return r;
    event_send(host, EVENT_VOLUME_REMOVED, &info); /* before the row goes, as in destroy.c */
    return registry_remove_volume(host->registry, info.id, err);
}

int named_volume_share(struct host *host, const struct caller *caller, const char *word,
                       const struct sharing *sharing, struct volume_info *ret, struct err *err)
{
    const struct share_object object = { SHARE_VOLUME, ret->id, ret->owner, ret->name };
    int r = named_volume_find_own(host, caller, word, ret, err);

    return r == 0 ? share_set(host, &object, sharing, err) : r;
}

int named_volume_shares(struct host *host, const struct caller *caller,
                        const struct volume_info *info, struct share **ret, size_t *ret_count,
                        struct err *err)
{
    *ret_count = 0;
    if (!named_volume_is_own(info, caller))
        return 0;
    return registry_list_shares(host->registry, SHARE_VOLUME, info->id, ret, ret_count, err);
}

int named_volume_record(struct host *host, const char *id, const char *name, struct err *err)
{
    struct volume_info info = { .id = "" };
    int r = info_init(&info, OWNER_ROOT, name, err);

    if (r < 0)
        return r;
    (void)snprintf(info.id, sizeof(info.id), "%s", id);
    return registry_add_volume(host->registry, &info, err);
}

int named_volumes_recover(struct host *host, struct err *err)
{
    cleanup_free struct volume_info *list = NULL;
    size_t count = 0;
    int r = registry_list_volumes(host->registry, &list, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        cleanup_close int fd = plain_open(host->store, list[i].id);

        if (fd != -ENOENT)
            continue;
        if (audit_facts_find(recovery_facts(host), list[i].id).is_destroyed) {
            r = registry_remove_volume(host->registry, list[i].id, err);
            continue;
        }
        r = shared_volume_create(host, list[i].id, err);
        owner_event(host, list[i].owner, EVENT_VOLUME_CREATED,
                    json_pack("{s:s, s:s, s:b}", "volume", list[i].id, "name", list[i].name,
                              "recovered", true));
    }
    return r;
}

int named_volume_mount(struct host *host, const struct caller *caller,
                       const struct named_mount *wanted, struct sandbox_mount *ret, struct err *err)
{
    struct volume_info info;
    int r = named_volume_find(host, caller, wanted->volume, &info, err);
    bool is_own = r == 0 && named_volume_is_own(&info, caller);

    if (r == 0 && !is_own && !wanted->is_read_only && !wanted->adapts)
        r = err_set(err, ERR_DENIED,
                    "volume '%s' belongs to '%s', which shares it for reading: mount it read-only",
                    info.name, info.owner);
    if (r == 0)
        r = sandbox_mount_init(ret, info.id, wanted->path, err);
    if (r == 0)
        ret->is_read_only = wanted->is_read_only || !is_own;
    return r;
}

/* --- migration -------------------------------------------------------------------------------- */

static int text_copy(const json_t *object, const char *name, char *ret, size_t size,
                     struct err *err)
{
    const char *text = NULL;
    int r = json_get_text(object, name, &text, err);

    if (r == 0 && (!text || strlen(text) >= size))
        r = err_set(err, ERR_INVALID, "field '%s' of a volume is missing or too long", name);
    if (r == 0)
        (void)snprintf(ret, size, "%s", text);
    return r;
}

/* A volume that an interrupted migration has recorded is skipped. */
static int volume_migrate(struct host *host, const json_t *object, struct err *err)
{
    struct volume_info info = { .owner = OWNER_ROOT }, known;
    struct err ignored;
    int r = text_copy(object, "id", info.id, sizeof(info.id), err);

    if (r == 0)
        r = text_copy(object, "name", info.name, sizeof(info.name), err);
    if (r == 0)
        r = text_copy(object, "token", info.token, sizeof(info.token), err);
    if (r < 0 || named_volume_get(host, info.id, &known, &ignored) == 0)
        return r;
    return registry_add_volume(host->registry, &info, err);
}

int named_volumes_migrate(struct host *host, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(OLD_FILE_MAX);
    cleanup_json json_t *file = NULL;
    const json_t *list = NULL;
    int r = file_read_at(host->state_fd, old_file, &content);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_sys(err, r, "read %s in the state directory", old_file);
    r = json_parse_object(content.data, content.len, &file, err);
    if (r == 0)
        r = json_get_array(file, "objects", &list, err);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = volume_migrate(host, json_array_get(list, i), err);
    if (r < 0)
        return err_wrap(err, "%s in the state directory", old_file);
    return unlinkat(host->state_fd, old_file, 0) < 0 ? err_sys(err, -errno, "remove %s", old_file)
                                                     : 0;
}
