// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/entry.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files/file_entry.h"
#include "base/json.h"

enum { PERMISSIONS_SIZE = 16, TIME_SIZE = 64, NUMBER_SIZE = 16 };

static const char *type_name(enum entry_type type)
{
    if (type == ENTRY_NONE)
        return NULL;
    return type == ENTRY_DIRECTORY ? "FILE_TYPE_DIRECTORY" : "FILE_TYPE_FILE";
}

/* Formats the mode as Go does: letters for the type, then nine bits; "-" for a regular file. */
static void permissions_write(const struct file_entry *entry, char ret[PERMISSIONS_SIZE])
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
    int len = snprintf(ret, PERMISSIONS_SIZE, "%s%s%s%s%s", types[entry->type],
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

static void time_write(const struct file_entry *entry, char ret[TIME_SIZE])
{
    const int64_t last = 253402300799; /* of the year 9999, the last that a timestamp can say */
    time_t when = entry->mtime_s < 0 ? 0 : entry->mtime_s > last ? last : (time_t)entry->mtime_s;
    struct tm tm;

    (void)gmtime_r(&when, &tm);
    (void)snprintf(ret, TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, entry->mtime_ns);
}

/* Returns the name, or the number if there is none. */
static json_t *owner_json(const char *name, uint32_t id)
{
    char number[NUMBER_SIZE];

    (void)snprintf(number, sizeof(number), "%u", id);
    return json_text(name[0] ? name : number);
}

json_t *e2b_meta_json(const struct file_entry *entry)
{
    json_t *object = json_object();
    const char *next = entry->meta, *end = entry->meta + entry->meta_len;

    while (object && next && next < end) {
        const char *value = next + strlen(next) + 1;

        if (value >= end)
            break;
        (void)json_object_set_new(object, next, json_text(value));
        next = value + strlen(value) + 1;
    }
    return object;
}

json_t *e2b_entry_json(const char *path, const struct file_entry *entry)
{
    bool is_link = entry->type == ENTRY_LINK;
    const char *slash = strrchr(path, '/');
    char permissions[PERMISSIONS_SIZE], when[TIME_SIZE];
    json_t *message;

    permissions_write(entry, permissions);
    time_write(entry, when);
    message =
        json_pack("{s:o, s:s*, s:o, s:o, s:I, s:s, s:o, s:o, s:s, s:o}", "name",
                  json_text(slash && slash[1] ? slash + 1 : path), "type",
                  type_name(is_link ? entry->end_type : entry->type), "path", json_text(path),
                  "size", json_u64(entry->size), "mode",
                  (json_int_t)((is_link && entry->end_type ? entry->end_mode : entry->mode) & 0777),
                  "permissions", permissions, "owner", owner_json(entry->user_name, entry->uid),
                  "group", owner_json(entry->group_name, entry->gid), "modifiedTime", when,
                  "metadata", e2b_meta_json(entry));
    if (message && is_link)
        (void)json_object_set_new(message, "symlinkTarget",
                                  json_text(entry->end_path[0] ? entry->end_path : entry->target));
    return message;
}
