// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static void model_fill(void *result, struct holt_model *model, const struct msg_model *message)
{
    (void)result;
    *model = (struct holt_model){ .name = message->name,
                                  .upstream = message->upstream,
                                  .provider = message->provider,
                                  .kind = message->kind,
                                  .has_price = message->has_input_nanos,
                                  .input_nanos = message->input_nanos,
                                  .output_nanos = message->output_nanos,
                                  .cache_read_nanos = message->cache_read_nanos,
                                  .cache_write_nanos = message->cache_write_nanos };
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_model_list_response *response = message;
    struct holt_model_list *list = result;

    (void)error;
    list->models = RESULT_LIST(result, struct holt_model, model_fill, response->models,
                               response->models_count);
    list->count = response->models_count;
    list->prices_date = response->prices_date;
    return 0;
}

int holt_model_list(struct holt *holt, int64_t deadline, struct holt_model_list **ret,
                    struct holt_error *error)
{
    const struct msg_model_list_request request = { 0 };
    const struct client_call call = { &method_model_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static void use_fill(void *result, struct holt_model_use *use,
                     const struct msg_model_usage *message)
{
    (void)result;
    *use = (struct holt_model_use){ .day = message->day,
                                    .sandbox_id = message->sandbox_id,
                                    .owner = message->owner,
                                    .model = message->model,
                                    .requests = message->requests,
                                    .unsettled = message->unsettled,
                                    .input_tokens = message->input_tokens,
                                    .cache_read_tokens = message->cache_read_tokens,
                                    .cache_write_tokens = message->cache_write_tokens,
                                    .output_tokens = message->output_tokens,
                                    .cost_nanos = message->cost_nanos };
}

static int usage_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_model_usage_response *response = message;
    struct holt_model_usage *usage = result;

    (void)error;
    usage->rows =
        RESULT_LIST(result, struct holt_model_use, use_fill, response->rows, response->rows_count);
    usage->count = response->rows_count;
    return 0;
}

int holt_model_usage(struct holt *holt, const struct holt_model_usage_options *options,
                     int64_t deadline, struct holt_model_usage **ret, struct holt_error *error)
{
    struct holt_model_usage_options given = HOLT_INIT(holt_model_usage_options);
    struct msg_model_usage_request request;
    const struct client_call call = { &method_model_service_usage, &request, true, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_model_usage_request){
        .days = given.days, .sandbox_id = given.sandbox, .label = given.label, .owner = given.owner
    };
    return client_call_for(holt, &call, sizeof(**ret), usage_fill, ret, error);
}
