// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file_entry.h"
#include "base/json.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"

/* Of every directory, as with E2B; btrfs reports 0 for an empty one. */
enum { DIRECTORY_BYTES = 4096 };

static enum envd_file_type type_of(enum entry_type type)
{
    if (type == ENTRY_NONE)
        return ENVD_FILE_TYPE_UNSPECIFIED;
    return type == ENTRY_DIRECTORY ? ENVD_FILE_TYPE_DIRECTORY : ENVD_FILE_TYPE_FILE;
}

/* Formats the mode as Go does: letters for the type, then nine bits; "-" for a regular file. */
static void permissions_write(const struct file_entry *entry, char ret[E2B_PERMISSIONS_SIZE])
{
    static const char *const types[ENTRY_TYPES] = {
        [ENTRY_NONE] = "?",
        [ENTRY_FILE] = "",
        [ENTRY_DIRECTORY] = "d",
        [ENTRY_LINK] = "L",
        [ENTRY_PIPE] = "p",
        [ENTRY_SOCKET] = "S",
        [ENTRY_CHARACTER_DEVICE] = "D",
        [ENTRY_BLOCK_DEVICE] = "D",
    };
    static const char bits[] = "rwxrwxrwx";
    int len = snprintf(ret, E2B_PERMISSIONS_SIZE, "%s%s%s%s%s", types[entry->type],
                       entry->mode & S_ISUID ? "u" : "", entry->mode & S_ISGID ? "g" : "",
                       entry->type == ENTRY_CHARACTER_DEVICE ? "c" : "",
                       entry->mode & S_ISVTX ? "t" : "");

    if (len == 0)
        ret[len++] = '-';
    memset(ret + len, '-', 9);
    for (int i = 0; i < 9; i++)
        if (entry->mode & (0400U >> i))
            ret[len + i] = bits[i];
    ret[len + 9] = '\0';
}

/* Returns the name, or the number if there is none. */
static const char *owner_text(const char *name, uint32_t id, char number[E2B_OWNER_SIZE])
{
    (void)snprintf(number, E2B_OWNER_SIZE, "%u", id);
    return name[0] ? name : number;
}

/* Takes the next name and value of the metadata at *at, which is NULL first; false at the end. */
static bool meta_next(const struct file_entry *entry, const char **at, struct pair *ret)
{
    const char *end = entry->meta + entry->meta_len;
    const char *name = *at ? *at : entry->meta, *value;

    if (!name || name >= end)
        return false;
    value = name + strlen(name) + 1;
    if (value >= end)
        return false;
    *ret = (struct pair){ name, value };
    *at = value + strlen(value) + 1;
    return true;
}

json_t *e2b_meta_json(const struct file_entry *entry)
{
    json_t *object = json_object();
    const char *at = NULL;
    struct pair pair;

    while (object && meta_next(entry, &at, &pair))
        (void)json_object_set_new(object, pair.key, json_text(pair.value));
    return object;
}

/* Names that are not UTF-8, which a sandbox can set by itself, could become alike: left out. */
static void meta_fill(struct e2b_entry *ret, const struct file_entry *entry)
{
    size_t count = 0;
    const char *at = NULL;
    struct pair pair;

    while (meta_next(entry, &at, &pair))
        count++;
    if (count == 0)
        return;
    ret->metadata = xcalloc(count, sizeof(*ret->metadata));
    for (count = 0, at = NULL; meta_next(entry, &at, &pair);)
        if (utf8_valid(pair.key, strlen(pair.key)) == strlen(pair.key))
            ret->metadata[count++] = pair;
    ret->info.metadata = ret->metadata;
    ret->info.metadata_count = count;
}

void e2b_entry_init(struct e2b_entry *ret, const char *path, const struct file_entry *entry)
{
    bool is_link = entry->type == ENTRY_LINK;
    const char *slash = strrchr(path, '/');

    *ret = (struct e2b_entry){
        .info = {
            .name = slash && slash[1] ? slash + 1 : path,
            .type = type_of(is_link ? entry->end_type : entry->type),
            .path = path,
            .size = entry->type == ENTRY_DIRECTORY ? DIRECTORY_BYTES : (int64_t)entry->size,
            .mode = (is_link && entry->end_type ? entry->end_mode : entry->mode) & 0777,
            .permissions = ret->permissions,
            .modified_time = {
                .is_set = true,
                .seconds = entry->mtime_s < 0 ? 0 : entry->mtime_s,
                .nanoseconds = entry->mtime_ns,
            },
        },
    };
    ret->info.owner = owner_text(entry->user_name, entry->uid, ret->uid);
    ret->info.group = owner_text(entry->group_name, entry->gid, ret->gid);
    permissions_write(entry, ret->permissions);
    meta_fill(ret, entry);
    if (is_link)
        ret->info.symlink_target = entry->end_path[0] ? entry->end_path : entry->target;
}

void e2b_entry_done(struct e2b_entry *entry)
{
    free(entry->metadata);
    entry->metadata = NULL;
}
