// SPDX-License-Identifier: Apache-2.0
#include "api/message/file_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/message/fields.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "wire/file_json.h"

enum { LIST_MAX = 10000, FIELDS_MAX = 16 };

/* What may be said in a request of each type, besides what all have. */
static const char *const own_fields[FILE_MESSAGE_TYPES][FIELDS_MAX] = {
    [FILE_STAT] = { "follow" },
    [FILE_LIST] = { "depth", "limit", "after" },
    [FILE_READ] = { "offset", "length" },
    [FILE_WRITE] = { "mode", "parents", "atomic", "exclusive", "append", "offset", "data" },
    [FILE_MKDIR] = { "mode", "parents" },
    [FILE_MOVE] = { "to", "rawTo", "replace", "parents" },
    [FILE_REMOVE] = { "recursive", "missingOk" },
    [FILE_WATCH] = { "recursive" },
    [FILE_PULL] = { "follow" },
    [FILE_PUSH] = { "parents", "keepOwner", "entry", "data" },
};

static const struct {
    const char *field;
    enum file_flag flag;
} flags[] = {
    { "follow", FILE_FOLLOW },        { "parents", FILE_PARENTS },
    { "replace", FILE_REPLACE },      { "recursive", FILE_RECURSIVE },
    { "missingOk", FILE_MISSING_OK }, { "atomic", FILE_ATOMIC },
    { "exclusive", FILE_EXCLUSIVE },  { "append", FILE_APPEND },
    { "keepOwner", FILE_KEEP_OWNER },
};

static int fields_check(const json_t *message, enum file_message_type type, struct err *err)
{
    const char *names[FIELDS_MAX + 5] = { "sandboxId", "path", "rawPath", "user" };
    size_t count = 4;

    for (size_t i = 0; i < FIELDS_MAX && own_fields[type][i]; i++)
        names[count++] = own_fields[type][i];
    return json_only_fields(message, names, err);
}

static int flags_get(const json_t *message, uint32_t *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        bool is_on = false;
        int r = json_get_bool(message, flags[i].field, &is_on, err);

        if (r < 0)
            return r;
        if (is_on)
            *ret |= flags[i].flag;
    }
    return 0;
}

static int numbers_get(const json_t *message, struct file_request *request, struct err *err)
{
    int r = json_get_u64(message, "offset", &request->offset, err);

    if (r == 0)
        r = json_get_u64(message, "length", &request->length, err);
    if (r == 0)
        r = json_get_u32(message, "depth", &request->depth, err);
    if (r == 0)
        r = json_get_u32(message, "limit", &request->limit, err);
    if (r == 0)
        r = json_get_u32(message, "mode", &request->mode, err);
    if (r < 0)
        return r;
    if (request->offset > INT64_MAX || request->length > INT64_MAX)
        return err_set(err, ERR_INVALID, "field 'offset' or 'length' is too large");
    if (request->mode > 07777)
        return err_set(err, ERR_INVALID, "field 'mode' has more than permission bits");
    if (request->limit == 0 || request->limit > LIST_MAX)
        request->limit = LIST_MAX;
    if (json_field(message, "mode"))
        request->flags |= FILE_HAS_MODE;
    if (request->type == FILE_WRITE && json_field(message, "offset"))
        request->flags |= FILE_AT_OFFSET;
    return 0;
}

static int after_get(const json_t *message, char ret[ENTRY_PATH_MAX + 1], struct err *err)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(ENTRY_PATH_MAX);
    int r = json_get_bytes(message, "after", &bytes, err);

    if (r < 0)
        return r;
    if (bytes.len > 0 && memchr(bytes.data, '\0', bytes.len))
        return err_set(err, ERR_INVALID, "field 'after' is none that a listing has given");
    if (bytes.len > 0)
        memcpy(ret, bytes.data, bytes.len);
    ret[bytes.len] = '\0';
    return 0;
}

int file_call_request_parse(const json_t *message, enum file_message_type type,
                            struct file_call_request *ret, struct err *err)
{
    struct file_request *request = &ret->request;
    int r = fields_check(message, type, err);

    *request = (struct file_request){
        .type = type, .path = ret->path, .to = ret->to, .after = ret->after, .user = ""
    };
    ret->to[0] = ret->after[0] = '\0';
    if (r == 0)
        r = field_sandbox(message, &ret->sandbox, err);
    if (r == 0)
        r = file_json_get_path(message, "path", "rawPath", ret->path, err);
    if (r == 0 && ret->path[0] == '\0')
        r = err_set(err, ERR_INVALID, "field 'path' is missing");
    if (r == 0 && type == FILE_MOVE)
        r = file_json_get_path(message, "to", "rawTo", ret->to, err);
    if (r == 0 && type == FILE_MOVE && ret->to[0] == '\0')
        r = err_set(err, ERR_INVALID, "field 'to' is missing");
    if (r == 0)
        r = json_get_text(message, "user", &request->user, err);
    if (r == 0)
        r = flags_get(message, &request->flags, err);
    if (r == 0)
        r = numbers_get(message, request, err);
    if (r == 0 && type == FILE_LIST)
        r = after_get(message, ret->after, err);
    return r;
}

int file_call_request_absolute(const char *path, char ret[ENTRY_PATH_MAX + 1])
{
    int len =
        snprintf(ret, ENTRY_PATH_MAX + 1, "%s%s", path[0] == '/' ? "" : FILE_WORKSPACE "/", path);

    return len > ENTRY_PATH_MAX ? -ENAMETOOLONG : 0;
}
