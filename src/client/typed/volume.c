// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "client/client_internal.h"
#include "client/typed/request.h"
#include "holt.h"

static void volume_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_volume *volume = into;

    volume->id = read_text(reading, object, "id");
    volume->name = read_text(reading, object, "name");
}

int holt_volume_create(struct holt *holt, const char *name, int64_t deadline,
                       struct holt_volume **ret, struct holt_error *error)
{
    const struct client_answer answer = { "volume", sizeof(**ret), volume_read };
    const struct client_call call = { "VolumeService/Create",
                                      request_text(json_object(), "name", name), false, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *volumes = read_array(reading, object, "volumes");
    struct holt_volume_list *list = into;

    list->count = json_array_size(volumes);
    list->items = (const struct holt_volume *const *)read_list(reading, volumes,
                                                               sizeof(**list->items), volume_read);
}

int holt_volume_list(struct holt *holt, int64_t deadline, struct holt_volume_list **ret,
                     struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "VolumeService/List", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_volume_remove(struct holt *holt, const char *volume, int64_t deadline,
                       struct holt_error *error)
{
    const struct client_call call = { "VolumeService/Remove",
                                      request_text(json_object(), "volume", volume), false,
                                      deadline };

    return client_call_void(holt, &call, error);
}
