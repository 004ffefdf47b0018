// SPDX-License-Identifier: Apache-2.0
#include "wire/file_message.h"

#include <string.h>

#include "base/err.h"
#include "base/text/utf8.h"

static bool path_is_text(const char *path)
{
    size_t len = strlen(path);

    return utf8_valid(path, len) == len;
}

const char *path_text(const char *path)
{
    return path && path_is_text(path) ? path : NULL;
}

struct span path_raw(const char *path)
{
    return !path || path_is_text(path) ? (struct span){ .data = NULL }
                                       : (struct span){ path, strlen(path) };
}

const char *path_of(const char *text, const struct span *raw)
{
    return raw->len > 0 ? raw->data : text;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

struct msg_file_entry file_entry_message(const struct file_entry *entry)
{
    return (struct msg_file_entry){
        .path = entry->path,
        .raw_path = path_raw(entry->path),
        .name = last_part(entry->path),
        .type = entry_type_name(entry->type),
        .size = entry->size,
        .mode = entry->mode,
        .uid = entry->uid,
        .gid = entry->gid,
        .owner = entry->user_name,
        .group = entry->group_name,
        .modified_time = { .is_set = true,
                           .nanoseconds = entry->mtime_ns,
                           .seconds = entry->mtime_s },
        .inode = entry->inode,
        .links = entry->links,
        .target = entry->target,
        .raw_target = path_raw(entry->target),
        .same_as = entry->same_as,
        .raw_same_as = path_raw(entry->same_as),
    };
}

int file_entry_of(const struct msg_file_entry *message, struct file_entry *ret, struct err *err)
{
    *ret = (struct file_entry){
        .path = path_of(message->path, &message->raw_path),
        .type = entry_type_find(message->type),
        .mode = message->mode,
        .uid = message->uid,
        .gid = message->gid,
        .size = message->size,
        .inode = message->inode,
        .links = message->links,
        .mtime_s = message->modified_time.seconds,
        .mtime_ns = message->modified_time.nanoseconds,
        .target = path_of(message->target, &message->raw_target),
        .same_as = path_of(message->same_as, &message->raw_same_as),
        .user_name = "",
        .group_name = "",
    };
    if (ret->type == ENTRY_NONE)
        return err_set(err, ERR_INVALID, "field 'type': '%.40s' is not a type of file",
                       message->type);
    return 0;
}
