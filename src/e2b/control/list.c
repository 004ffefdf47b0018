// SPDX-License-Identifier: Apache-2.0
/* The control API: lists of sandboxes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/page.h"
#include "e2b/core/route.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

enum { KEY_SIZE = SANDBOX_ID_MAX + 24 };

struct filter {
    json_t *metadata; /* {name: value}; NULL: any */
    bool wants_running, wants_paused;
    uint64_t started_after_ms;
    const char *template;
    bool is_ascending;
};

static void filter_done(struct filter *filter)
{
    json_decref(filter->metadata);
}

/* As a form has it, and once more as a URI has it. */
static char *decode_twice(const char *text, size_t len)
{
    cleanup_free char *once = e2b_unescape(text, len, true);

    return once ? e2b_unescape(once, strlen(once), false) : NULL;
}

/* "k=v&k2=v2", each of them encoded twice. */
static int metadata_parse(const char *text, json_t **ret, struct err *err)
{
    cleanup_json json_t *metadata = json_object();

    while (*text) {
        size_t len = strcspn(text, "&"), at = strcspn(text, "=");
        cleanup_free char *key = decode_twice(text, at < len ? at : len);
        cleanup_free char *value =
            at < len ? decode_twice(text + at + 1, len - at - 1) : decode_twice("", 0);

        if (!key || !value)
            return err_set(err, ERR_INVALID, "metadata is not UTF-8");
        if (*key)
            (void)json_object_set_new(metadata, key, json_string(value));
        text += len;
        text += *text == '&';
    }
    *ret = TAKE_PTR(metadata);
    return 0;
}

static int states_parse(const char *text, struct filter *filter, struct err *err)
{
    filter->wants_running = filter->wants_paused = !text || *text == '\0';
    while (text && *text) {
        size_t len = strcspn(text, ",");

        if (len == 7 && strncmp(text, "running", len) == 0)
            filter->wants_running = true;
        else if (len == 6 && strncmp(text, "paused", len) == 0)
            filter->wants_paused = true;
        else
            return err_set(err, ERR_INVALID, "state must be running or paused");
        text += len;
        text += *text == ',';
    }
    return 0;
}

static int filter_parse(const struct e2b_request *request, struct filter *ret, struct err *err)
{
    const char *metadata = e2b_query(request, "metadata"), *order = e2b_query(request, "order");
    const char *after = e2b_query(request, "startedAfter");
    int r = states_parse(e2b_query(request, "state"), ret, err);

    if (r == 0 && metadata)
        r = metadata_parse(metadata, &ret->metadata, err);
    if (r < 0)
        return r;
    if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        return err_set(err, ERR_INVALID, "order must be asc or desc");
    if (after && parse_time_ms(after, &ret->started_after_ms) < 0)
        return err_set(err, ERR_INVALID, "startedAfter must be a moment as RFC 3339 has it");
    ret->is_ascending = order && strcmp(order, "asc") == 0;
    ret->template = e2b_query(request, "template");
    return 0;
}

static bool has_metadata(const json_t *kept, const json_t *wanted)
{
    const json_t *metadata = json_object_get(kept, "metadata");
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
        if (!json_equal(json_object_get(metadata, key), value))
            return false;
    }
    return true;
}

static bool has_template(const struct sandbox_info *info, const json_t *metadata,
                         const char *wanted)
{
    const char *id = e2b_metadata_text(metadata, "templateID"),
               *alias = e2b_metadata_text(metadata, "alias");

    return strcmp(id ? id : info->template, wanted) == 0 || (alias && strcmp(alias, wanted) == 0);
}

static bool is_wanted(const struct filter *filter, const struct sandbox_info *info,
                      const json_t *metadata)
{
    bool is_running = e2b_is_running(info);

    return e2b_is_there(info) && (is_running ? filter->wants_running : filter->wants_paused) &&
           info->created_ms >= filter->started_after_ms &&
           (!filter->template || has_template(info, metadata, filter->template)) &&
           has_metadata(metadata, filter->metadata);
}

/* What it is sorted by, as text of the same order: when, and which where that is the same. */
static void key_of(const struct sandbox_info *info, char ret[KEY_SIZE])
{
    (void)snprintf(ret, KEY_SIZE, "%016" PRIx64 "-%s", info->created_ms, info->id);
}

static int compare(const void *a, const void *b)
{
    char left[KEY_SIZE], right[KEY_SIZE];

    key_of(a, left);
    key_of(b, right);
    return strcmp(left, right);
}

static int compare_reverse(const void *a, const void *b)
{
    return compare(b, a);
}

/* One of the list, if it belongs to this page; NULL: it does not. */
static json_t *item_json(struct e2b_request *request, const struct filter *filter,
                         const char *after, const struct sandbox_info *info)
{
    cleanup_json json_t *metadata = NULL;
    char key[KEY_SIZE];
    int order;

    key_of(info, key);
    order = after ? strcmp(key, after) : 0;
    if (after && (filter->is_ascending ? order <= 0 : order >= 0))
        return NULL;
    metadata = e2b_info_note(info);
    return is_wanted(filter, info, metadata) ? e2b_listed_json(request, info, metadata) : NULL;
}

static json_t *list_json(struct e2b_request *request, const struct filter *filter,
                         const struct e2b_page *page, const struct sandbox_info *list, size_t count)
{
    json_t *array = json_array();
    const struct sandbox_info *last = NULL;
    char key[KEY_SIZE];

    for (size_t i = 0; i < count; i++) {
        json_t *item = item_json(request, filter, page->after, &list[i]);

        if (!item)
            continue;
        if (json_array_size(array) == page->limit) {
            json_decref(item);
            key_of(last, key);
            e2b_page_more(request, key);
            break;
        }
        (void)json_array_append_new(array, item);
        last = &list[i];
    }
    return array;
}

static void tell_running(struct e2b_request *request, const struct sandbox_info *list, size_t count)
{
    char text[24];
    size_t running = 0;

    for (size_t i = 0; i < count; i++)
        running += e2b_is_there(&list[i]) && e2b_is_running(&list[i]);
    (void)snprintf(text, sizeof(text), "%zu", running);
    e2b_header_add(request, "X-Total-Running", text);
}

static enum MHD_Result list_answer(struct e2b_request *request, const struct filter *filter,
                                   const struct e2b_page *page)
{
    struct sandbox_info *list = NULL;
    size_t count = 0;
    json_t *array;

    sandbox_list(request->host, &request->exchange->caller, NULL, 0, &list, &count);
    if (count > 0)
        qsort(list, count, sizeof(*list), filter->is_ascending ? compare : compare_reverse);
    array = list_json(request, filter, page, list, count);
    tell_running(request, list, count);
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&list[i]);
    free(list);
    return e2b_reply_json(request, MHD_HTTP_OK, array);
}

static enum MHD_Result list_v2(struct e2b_request *request)
{
    cleanup_with(filter_done) struct filter filter = { 0 };
    struct e2b_page page;
    struct err err = { 0 };

    if (filter_parse(request, &filter, &err) < 0 || e2b_page_parse(request, &page, &err) < 0)
        return e2b_reply_err(request, &err);
    return list_answer(request, &filter, &page);
}

/* The older form: running ones, all at once. */
static enum MHD_Result list_v1(struct e2b_request *request)
{
    cleanup_with(filter_done) struct filter filter = { 0 };
    struct e2b_page page = { .limit = SIZE_MAX };
    struct err err = { 0 };

    if (filter_parse(request, &filter, &err) < 0)
        return e2b_reply_err(request, &err);
    filter.wants_paused = false;
    return list_answer(request, &filter, &page);
}

static const struct e2b_route routes[] = {
    { "GET", "/v2/sandboxes", .answer = list_v2 },
    { "GET", "/sandboxes", .answer = list_v1 },
};

const struct e2b_routes e2b_list_routes = { routes, ARRAY_SIZE(routes) };
