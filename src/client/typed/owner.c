// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "holt.h"

enum { SETTINGS_MAX = 16 }; /* the daemon's limit */

static void ceiling_fill(void *result, struct holt_owner_ceiling *ceiling,
                         const struct msg_owner_ceiling *message)
{
    (void)result;
    *ceiling = (struct holt_owner_ceiling){ .name = message->name,
                                            .value = message->value,
                                            .source = message->source };
}

static void owner_fill(void *result, struct holt_owner *owner, const struct msg_owner *message)
{
    const struct msg_owner_usage *usage = message->usage;

    owner->name = message->name;
    if (usage) {
        owner->sandboxes = usage->sandboxes;
        owner->memory_bytes = usage->memory_bytes;
        owner->cpu_millis = usage->cpu_millis;
        owner->pids = usage->pids;
        owner->disk_bytes = usage->disk_bytes;
    }
    owner->ceilings = RESULT_LIST(result, struct holt_owner_ceiling, ceiling_fill,
                                  message->ceilings, message->ceilings_count);
    owner->ceiling_count = message->ceilings_count;
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_owner_get_response *reply = message;

    if (!reply->owner)
        return reply_lacks("owner", error);
    owner_fill(result, result, reply->owner);
    return 0;
}

int holt_owner_get(struct holt *holt, const char *owner, int64_t deadline, struct holt_owner **ret,
                   struct holt_error *error)
{
    const struct msg_owner_get_request request = { .owner = owner ? owner : "" };
    const struct client_call call = { &method_owner_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_owner_list_response *reply = message;
    struct holt_owner_list *list = result;

    (void)error;
    list->count = reply->owners_count;
    list->items =
        RESULT_LIST(result, struct holt_owner, owner_fill, reply->owners, reply->owners_count);
    return 0;
}

int holt_owner_list(struct holt *holt, int64_t deadline, struct holt_owner_list **ret,
                    struct holt_error *error)
{
    const struct msg_owner_list_request request = { 0 };
    const struct client_call call = { &method_owner_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static int set_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_owner_set_response *reply = message;

    if (!reply->owner)
        return reply_lacks("owner", error);
    owner_fill(result, result, reply->owner);
    return 0;
}

int holt_owner_set(struct holt *holt, const char *owner, const struct holt_owner_options *options,
                   int64_t deadline, struct holt_owner **ret, struct holt_error *error)
{
    struct holt_owner_options given = HOLT_INIT(holt_owner_options);
    struct msg_owner_setting items[SETTINGS_MAX];
    struct msg_owner_set_request request = { .owner = owner, .settings = items };
    const struct client_call call = { &method_owner_service_set, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    if (given.count > SETTINGS_MAX)
        return error_set(error, "invalid_argument", "at most %d settings", SETTINGS_MAX);
    for (size_t i = 0; i < given.count; i++) {
        const struct holt_owner_setting *setting = &given.settings[i];

        items[i] = (struct msg_owner_setting){ .name = setting->name,
                                               .value = setting->value ? setting->value : "" };
    }
    request.settings_count = given.count;
    return client_call_for(holt, &call, sizeof(**ret), set_fill, ret, error);
}

int holt_owner_remove(struct holt *holt, const char *owner, int64_t deadline,
                      struct holt_error *error)
{
    const struct msg_owner_remove_request request = { .owner = owner };
    const struct client_call call = { &method_owner_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}
