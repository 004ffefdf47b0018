// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/service.h"
#include "base/access/label.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/llm/llm.h"
#include "host/sandbox/sandbox.h"

enum { DAY_SIZE = 16, DAY_SECONDS = 24 * 60 * 60, MS_PER_SECOND = 1000 };

struct model_list {
    struct llm_model_info *infos;
    size_t count;
    char prices_date[LLM_DATE_SIZE];
};

static void model_add(void *data, const struct llm_model_info *info, const char *prices_date)
{
    struct model_list *list = data;

    list->infos = xreallocarray(list->infos, list->count + 1, sizeof(*list->infos));
    list->infos[list->count++] = *info;
    (void)snprintf(list->prices_date, sizeof(list->prices_date), "%s", prices_date);
}

static struct msg_model model_message(const struct llm_model_info *info)
{
    bool has_price = info->price.is_known;

    return (struct msg_model){ .name = info->name,
                               .upstream = info->upstream,
                               .provider = info->provider,
                               .kind = info->kind,
                               .has_input_nanos = has_price,
                               .input_nanos = info->price.input,
                               .has_output_nanos = has_price,
                               .output_nanos = info->price.output,
                               .has_cache_read_nanos = has_price,
                               .cache_read_nanos = info->price.cache_read,
                               .has_cache_write_nanos = has_price,
                               .cache_write_nanos = info->price.cache_write };
}

int model_service_list(const struct call *call, const struct msg_model_list_request *request,
                       struct err *err)
{
    struct model_list list = { .count = 0 };
    cleanup_free struct llm_model_info *infos = NULL;
    struct msg_model *models;

    (void)request;
    llm_each_model(host_llm(call->host), call->caller->owner, model_add, &list);
    infos = list.infos;
    models = arena_take(call->arena, list.count, sizeof(*models));
    for (size_t i = 0; i < list.count; i++)
        models[i] = model_message(&infos[i]);
    return call_reply(call,
                      MESSAGE(msg_model_list_response, .models = models, .models_count = list.count,
                              .prices_date = list.prices_date),
                      err);
}

static const char *day_text(const struct call *call, uint64_t day)
{
    char *text = arena_take(call->arena, DAY_SIZE, 1);
    time_t seconds = (time_t)(day * DAY_SECONDS);
    struct tm date;

    (void)strftime(text, DAY_SIZE, "%Y-%m-%d", gmtime_r(&seconds, &date));
    return text;
}

/* What of the rows was asked for. */
struct usage_filter {
    const struct call *call;
    const char *owner;   /* NULL: all */
    const char *sandbox; /* id; NULL: all */
    const struct label *label;
    size_t label_count;
    bool needs_sandbox; /* it must exist and be seen by the caller */
};

static bool usage_matches(const struct usage_filter *filter, const struct llm_usage_row *row)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { .id = "" };
    struct err ignored;

    if ((filter->owner && strcmp(filter->owner, row->owner) != 0) ||
        (filter->sandbox && strcmp(filter->sandbox, row->sandbox) != 0))
        return false;
    if (!filter->needs_sandbox)
        return true;
    if (sandbox_find(filter->call->host, filter->call->caller, row->sandbox, &sandbox, &ignored) <
        0)
        return false;
    sandbox_get_info(sandbox, false, &info);
    return labels_include(info.labels, info.label_count, filter->label, filter->label_count);
}

static struct msg_model_usage usage_message(const struct call *call,
                                            const struct llm_usage_row *row)
{
    const struct llm_usage *usage = &row->usage;

    return (struct msg_model_usage){ .day = day_text(call, row->day),
                                     .sandbox_id = row->sandbox,
                                     .owner = row->owner,
                                     .model = row->model,
                                     .requests = usage->requests,
                                     .unsettled = usage->unsettled,
                                     .input_tokens = usage->tokens.input,
                                     .cache_read_tokens = usage->tokens.cache_read,
                                     .cache_write_tokens = usage->tokens.cache_write,
                                     .output_tokens = usage->tokens.output,
                                     .cost_nanos = usage->money };
}

/* Another owner has used nothing for a caller without the role admin. */
static int filter_fill(const struct call *call, const struct msg_model_usage_request *request,
                       struct usage_filter *filter, struct label *room, struct err *err)
{
    const char *equals = strchr(request->label, '=');
    const struct caller *caller = call->caller;

    *filter =
        (struct usage_filter){ .call = call, .owner = *request->owner ? request->owner : NULL };
    if (!caller_is_host_admin(caller)) {
        if (filter->owner && strcmp(filter->owner, caller->owner) != 0)
            return err_set(err, ERR_NOT_FOUND, "no owner '%.64s'", filter->owner);
        filter->owner = caller->owner;
    }
    filter->needs_sandbox = caller->scope_count > 0 || *request->label;
    if (!*request->label)
        return 0;
    if (!equals || equals - request->label > LABEL_KEY_MAX || strlen(equals + 1) > LABEL_VALUE_MAX)
        return err_set(err, ERR_INVALID, "label '%.100s' is not KEY=VALUE", request->label);
    (void)snprintf(room->key, sizeof(room->key), "%.*s", (int)(equals - request->label),
                   request->label);
    (void)snprintf(room->value, sizeof(room->value), "%s", equals + 1);
    filter->label = room;
    filter->label_count = 1;
    return 0;
}

int model_service_usage(const struct call *call, const struct msg_model_usage_request *request,
                        struct err *err)
{
    uint64_t today = clock_wall_ms() / MS_PER_SECOND / DAY_SECONDS;
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_free struct llm_usage_row *rows = NULL;
    struct msg_model_usage *messages;
    struct usage_filter filter;
    struct label label;
    size_t count, shown = 0;
    int r = filter_fill(call, request, &filter, &label, err);

    if (r == 0 && *request->sandbox_id)
        r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);
    if (r < 0)
        return r;
    filter.sandbox = sandbox ? sandbox_id(sandbox) : NULL;
    count = llm_usage(host_llm(call->host), today + 1 - (request->days ? request->days : 1), &rows);
    messages = arena_take(call->arena, count, sizeof(*messages));
    for (size_t i = 0; i < count; i++)
        if (usage_matches(&filter, &rows[i]))
            messages[shown++] = usage_message(call, &rows[i]);
    return call_reply(
        call, MESSAGE(msg_model_usage_response, .rows = messages, .rows_count = shown), err);
}
