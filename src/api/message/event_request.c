// SPDX-License-Identifier: Apache-2.0
#include "api/message/event_request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/message/fields.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"

enum { TYPES_MAX = 64, PATTERN_MAX = 64 };

/* Bits for the types that one of the patterns matches; all when there is none. */
static int types_parse(const json_t *request, uint64_t *ret, struct err *err)
{
    const json_t *list = NULL;
    int r = json_get_array(request, "types", &list, err);

    if (r < 0)
        return r;
    *ret = json_array_size(list) == 0 ? UINT64_MAX : 0;
    if (json_array_size(list) > TYPES_MAX)
        return err_set(err, ERR_INVALID, "field 'types' has more than %d patterns", TYPES_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        uint64_t types =
            pattern && strlen(pattern) <= PATTERN_MAX ? event_types_matching(pattern) : 0;

        if (types == 0)
            return err_set(err, ERR_INVALID, "there is no type of events like '%.40s'",
                           pattern ? pattern : "");
        *ret |= types;
    }
    return 0;
}

/* RFC 3339 in UTC, as google.protobuf.Timestamp is written. */
static bool time_parse(const char *text, uint64_t *ret_ms)
{
    struct tm utc = { 0 };
    unsigned ms = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    time_t seconds;

    if (!rest)
        return false;
    if (*rest == '.') {
        unsigned factor = 100;

        for (rest++; *rest >= '0' && *rest <= '9'; rest++, factor /= 10)
            ms += (unsigned)(*rest - '0') * factor;
    }
    seconds = timegm(&utc);
    if (strcmp(rest, "Z") != 0 || seconds < 0)
        return false;
    *ret_ms = (uint64_t)seconds * 1000 + ms;
    return true;
}

static int since_parse(const json_t *request, struct event_reader_spec *ret, struct err *err)
{
    const char *time = NULL;
    int r = field_text(request, "sinceTime", &time, err);

    if (r < 0)
        return r;
    if (json_object_get(request, "since")) {
        if (time)
            return err_set(err, ERR_INVALID, "fields 'since' and 'sinceTime' exclude each other");
        ret->start = EVENT_BEHIND_SEQ;
        return json_get_u64(request, "since", &ret->value, err);
    }
    if (!time)
        return 0;
    ret->start = EVENT_SINCE_TIME;
    return time_parse(time, &ret->value)
               ? 0
               : err_set(err, ERR_INVALID,
                         "field 'sinceTime' must be like 2026-01-31T12:00:00Z, not '%.40s'", time);
}

int watch_request_parse(const json_t *request, struct watch_request *ret, struct err *err)
{
    static const char *const fields[] = { "since", "sinceTime", "sandboxId",
                                          "types", "noFollow",  NULL };
    bool ends = false;
    int r = json_only_fields(request, fields, err);

    *ret = (struct watch_request){ .spec = { .start = EVENT_FROM_NOW } };
    if (r == 0)
        r = since_parse(request, &ret->spec, err);
    if (r == 0)
        r = types_parse(request, &ret->spec.types, err);
    if (r == 0)
        r = field_text(request, "sandboxId", &ret->spec.sandbox, err);
    if (r == 0 && ret->spec.sandbox)
        r = field_sandbox(request, &ret->spec.sandbox, err);
    if (r == 0)
        r = json_get_bool(request, "noFollow", &ends, err);
    ret->follows = !ends;
    return r;
}
