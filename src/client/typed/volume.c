// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void volume_fill(void *result, struct holt_volume *volume, const struct msg_volume *message)
{
    (void)result;
    volume->id = message->id;
    volume->name = message->name;
    volume->owner = message->owner;
    volume->shared_with = message->shared_with;
    volume->shared_count = message->shared_with_count;
    volume->is_public = message->public;
}

static int created_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_volume_create_response *reply = message;

    if (!reply->volume)
        return reply_lacks("volume", error);
    volume_fill(result, result, reply->volume);
    return 0;
}

int holt_volume_create(struct holt *holt, const char *name, int64_t deadline,
                       struct holt_volume **ret, struct holt_error *error)
{
    const struct msg_volume_create_request request = { .name = name };
    const struct client_call call = { &method_volume_service_create, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), created_fill, ret, error);
}

static void unrecorded_fill(void *result, struct holt_unrecorded_volume *volume,
                            const struct msg_unrecorded_volume *message)
{
    (void)result;
    volume->id = message->id;
    volume->is_shared = message->is_shared;
    volume->is_running = message->is_running;
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_volume_list_response *reply = message;
    struct holt_volume_list *list = result;

    (void)error;
    list->unrecorded_count = reply->unrecorded_count;
    list->unrecorded = RESULT_LIST(result, struct holt_unrecorded_volume, unrecorded_fill,
                                   reply->unrecorded, reply->unrecorded_count);
    list->count = reply->volumes_count;
    list->items =
        RESULT_LIST(result, struct holt_volume, volume_fill, reply->volumes, reply->volumes_count);
    return 0;
}

int holt_volume_list(struct holt *holt, int64_t deadline, struct holt_volume_list **ret,
                     struct holt_error *error)
{
    const struct msg_volume_list_request request = { 0 };
    const struct client_call call = { &method_volume_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static int shared_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_volume_share_response *reply = message;

    if (!reply->volume)
        return reply_lacks("volume", error);
    volume_fill(result, result, reply->volume);
    return 0;
}

int holt_volume_share(struct holt *holt, const char *volume,
                      const struct holt_share_options *options, int64_t deadline,
                      struct holt_volume **ret, struct holt_error *error)
{
    struct holt_share_options given = HOLT_INIT(holt_share_options);
    struct msg_volume_share_request request;
    const struct client_call call = { &method_volume_service_share, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_volume_share_request){
        .volume = volume,
        .owners = given.owners,
        .owners_count = request_count(given.owners),
        .public = given.is_public,
    };
    return client_call_for(holt, &call, sizeof(**ret), shared_fill, ret, error);
}

int holt_volume_remove(struct holt *holt, const char *volume, int64_t deadline,
                       struct holt_error *error)
{
    const struct msg_volume_remove_request request = { .volume = volume };
    const struct client_call call = { &method_volume_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static int adopted_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_volume_adopt_response *reply = message;
    struct holt_adopted_volume *volume = result;

    (void)error;
    volume->sandbox = reply->sandbox_id;
    return 0;
}

int holt_volume_adopt(struct holt *holt, const char *volume,
                      const struct holt_adopt_options *options, int64_t deadline,
                      struct holt_adopted_volume **ret, struct holt_error *error)
{
    struct holt_adopt_options given = HOLT_INIT(holt_adopt_options);
    struct msg_volume_adopt_request request;
    const struct client_call call = { &method_volume_service_adopt, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_volume_adopt_request){
        .volume = volume,
        .name = given.name,
        .template = given.template_name,
    };
    return client_call_for(holt, &call, sizeof(**ret), adopted_fill, ret, error);
}
