// SPDX-License-Identifier: Apache-2.0
#include "wire/file_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"

enum { TIME_SIZE = 48, NS_DIGITS = 9, RAW_MAX = 2 * (ENTRY_PATH_MAX + 1) };

/* The range of google.protobuf.Timestamp: the years 1 to 9999. */
static const int64_t time_min = -62135596800, time_max = 253402300799;

int file_json_set_path(json_t *object, const char *field, const char *raw_field, const char *text)
{
    json_t *exact = json_string(text);

    if (!exact) {
        cleanup_with(buf_done) struct buf raw = BUF_INIT(RAW_MAX);

        if (base64_encode(&raw, text, strlen(text)) < 0 || !raw.data ||
            json_object_set_new(object, raw_field, json_string(raw.data)) < 0)
            return -ENOMEM;
    }
    return json_object_set_new(object, field, exact ? exact : json_text(text)) < 0 ? -ENOMEM : 0;
}

int file_json_get_path(const json_t *object, const char *field, const char *raw_field,
                       char ret[ENTRY_PATH_MAX + 1], struct err *err)
{
    cleanup_with(buf_done) struct buf raw = BUF_INIT(ENTRY_PATH_MAX);
    const char *text = "";
    int r;

    if (json_field(object, raw_field)) {
        r = json_get_bytes(object, raw_field, &raw, err);
        if (r < 0)
            return r;
        if (raw.len > 0 && memchr(raw.data, '\0', raw.len))
            return err_set(err, ERR_INVALID, "field '%s' contains a NUL byte", raw_field);
        text = raw.len > 0 ? raw.data : text;
    }
    if (text[0] == '\0') {
        r = json_get_text(object, field, &text, err);
        if (r < 0)
            return r;
    }
    if (strlen(text) > ENTRY_PATH_MAX)
        return err_set(err, ERR_INVALID, "field '%s' is longer than %d bytes", field,
                       ENTRY_PATH_MAX);
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

static void time_format(const struct file_entry *entry, char ret[TIME_SIZE])
{
    int64_t seconds = entry->mtime_s < time_min   ? time_min
                      : entry->mtime_s > time_max ? time_max
                                                  : entry->mtime_s;
    time_t when = (time_t)seconds;
    struct tm tm;

    (void)gmtime_r(&when, &tm);
    (void)snprintf(ret, TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, entry->mtime_ns);
}

/* Parses a fixed number of digits and the character after them (0: none). */
static bool digits_parse(const char **text, int digits, char behind, int *ret)
{
    *ret = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *ret = *ret * 10 + (**text - '0');
    }
    if (behind && *(*text)++ != behind)
        return false;
    return true;
}

/* Parses "2026-11-15T10:00:00.123456789Z", with 1 to 9 fractional digits or none. */
static bool time_parse(const char *text, struct file_entry *ret)
{
    struct tm tm = { 0 };
    uint32_t ns = 0;

    if (!digits_parse(&text, 4, '-', &tm.tm_year) || !digits_parse(&text, 2, '-', &tm.tm_mon) ||
        !digits_parse(&text, 2, 'T', &tm.tm_mday) || !digits_parse(&text, 2, ':', &tm.tm_hour) ||
        !digits_parse(&text, 2, ':', &tm.tm_min) || !digits_parse(&text, 2, 0, &tm.tm_sec))
        return false;
    if (*text == '.') {
        size_t digits = strspn(++text, "0123456789");

        if (digits < 1 || digits > NS_DIGITS)
            return false;
        for (size_t i = 0; i < NS_DIGITS; i++)
            ns = ns * 10 + (i < digits ? (uint32_t)(text[i] - '0') : 0);
        text += digits;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    ret->mtime_s = timegm(&tm);
    ret->mtime_ns = ns;
    return strcmp(text, "Z") == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

json_t *file_json_of(const struct file_entry *entry)
{
    char when[TIME_SIZE];
    json_t *message;

    time_format(entry, when);
    message =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:s, s:o, s:I}", "type", entry_type_name(entry->type),
                  "size", json_u64(entry->size), "mode", (json_int_t)entry->mode, "uid",
                  (json_int_t)entry->uid, "gid", (json_int_t)entry->gid, "modifiedTime", when,
                  "inode", json_u64(entry->inode), "links", (json_int_t)entry->links);
    if (!message)
        return NULL;
    if (file_json_set_path(message, "path", "rawPath", entry->path) < 0 ||
        json_object_set_new(message, "name", json_text(last_part(entry->path))) < 0 ||
        (entry->user_name[0] &&
         json_object_set_new(message, "owner", json_text(entry->user_name)) < 0) ||
        (entry->group_name[0] &&
         json_object_set_new(message, "group", json_text(entry->group_name)) < 0) ||
        (entry->target[0] &&
         file_json_set_path(message, "target", "rawTarget", entry->target) < 0) ||
        (entry->same_as[0] &&
         file_json_set_path(message, "sameAs", "rawSameAs", entry->same_as) < 0)) {
        json_decref(message);
        return NULL;
    }
    return message;
}

static int get_numbers(const json_t *message, struct file_entry *ret, struct err *err)
{
    int r = json_get_u64(message, "size", &ret->size, err);

    if (r == 0)
        r = json_get_u32(message, "mode", &ret->mode, err);
    if (r == 0)
        r = json_get_u32(message, "uid", &ret->uid, err);
    if (r == 0)
        r = json_get_u32(message, "gid", &ret->gid, err);
    if (r == 0)
        r = json_get_u64(message, "inode", &ret->inode, err);
    if (r == 0)
        r = json_get_u32(message, "links", &ret->links, err);
    if (r == 0 && ret->mode > 07777)
        return err_set(err, ERR_INVALID, "field 'mode' has more than permission bits");
    return r;
}

int file_json_get(const json_t *message, struct file_json_texts *texts, struct file_entry *ret,
                  struct err *err)
{
    const char *type = "", *when = NULL;
    int r;

    *ret = (struct file_entry){ .path = texts->path,
                                .target = texts->target,
                                .same_as = texts->same_as,
                                .user_name = "",
                                .group_name = "" };
    r = get_numbers(message, ret, err);
    if (r == 0)
        r = json_get_text(message, "type", &type, err);
    if (r == 0)
        r = json_get_text(message, "modifiedTime", &when, err);
    if (r == 0)
        r = file_json_get_path(message, "path", "rawPath", texts->path, err);
    if (r == 0)
        r = file_json_get_path(message, "target", "rawTarget", texts->target, err);
    if (r == 0)
        r = file_json_get_path(message, "sameAs", "rawSameAs", texts->same_as, err);
    if (r < 0)
        return r;
    ret->type = entry_type_find(type);
    if (ret->type == ENTRY_NONE)
        return err_set(err, ERR_INVALID, "field 'type': '%.40s' is not a file type", type);
    if (when && !time_parse(when, ret))
        return err_set(err, ERR_INVALID, "field 'modifiedTime': '%.60s' is not a time", when);
    return 0;
}
