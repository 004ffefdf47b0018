// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/request.h"
#include "holt.h"

static int take_message(void *context, struct reading *reading, const json_t *message,
                        struct holt_error *error)
{
    const struct holt_event_options *options = context;
    const json_t *object = read_object(reading, message, "event");
    const json_t *fields = read_object(reading, object, "fields");
    cleanup_free char *text = fields ? json_dumps(fields, JSON_COMPACT) : NULL;
    struct holt_event *event = reading->result;

    *event = (struct holt_event){
        .seq = read_u64(reading, object, "seq"),
        .time_ms = read_time(reading, object, "time"),
        .type = read_text(reading, object, "type"),
        .sandbox_id = read_text(reading, object, "sandboxId"),
        .sandbox_name = read_text(reading, object, "sandboxName"),
        .fields = text ? text : "{}",
        .lost = read_u64(reading, message, "lost"),
    };

    if (reading_end(reading, error) < 0)
        return -1;
    if ((object || event->lost) && options->on_event &&
        options->on_event(options->context, event) != 0)
        return error_set(error, "canceled", "the caller wanted no more events");
    return 0;
}

int holt_event_watch(struct holt *holt, const struct holt_event_options *options, int64_t deadline,
                     struct holt_error *error)
{
    struct holt_event_options given = HOLT_INIT(holt_event_options);
    struct messages_call call = {
        .method = "holt.v1.EventService/Watch",
        .request = json_object(),
        .deadline = deadline,
        .each = take_message,
        .context = &given,
        .size = sizeof(struct holt_event),
    };

    if (options_take(&given, sizeof(given), options, error) < 0) {
        json_decref(call.request);
        return -1;
    }
    if (given.has_since)
        call.request = request_value(call.request, "since", json_u64(given.since));
    else if (given.since_ms)
        call.request =
            request_value(call.request, "sinceTime", json_time((uint64_t)given.since_ms));
    call.request = request_text(call.request, "sandboxId", given.sandbox);
    if (given.types)
        call.request = request_value(call.request, "types", request_texts(given.types));
    call.request = request_true(call.request, "noFollow", given.ends);
    return messages_follow(holt, &call, error);
}
