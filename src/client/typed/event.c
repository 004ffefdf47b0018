// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static void event_fill(void *result, struct holt_event *event, const struct msg_event *message)
{
    cleanup_free char *fields = message->fields ? json_dumps(message->fields, JSON_COMPACT) : NULL;

    event->seq = message->seq;
    event->time_ms = (int64_t)message->time_ms;
    event->type = message->type;
    event->sandbox_id = message->sandbox_id;
    event->sandbox_name = message->sandbox_name;
    if (fields)
        event->fields = result_bytes(result, fields, strlen(fields));
}

/* A message without an event or a loss is a heartbeat. */
static int event_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct holt_event_options *options = context;
    const struct msg_watch_response *reply = message;
    struct holt_event *event = *result;

    *event = (struct holt_event){
        .type = "", .sandbox_id = "", .sandbox_name = "", .fields = "{}", .lost = reply->lost
    };
    if (reply->event)
        event_fill(*result, event, reply->event);
    if ((reply->event || reply->lost) && options->on_event &&
        options->on_event(options->context, event) != 0)
        return error_set(error, "canceled", "the caller ended the watch");
    return 0;
}

int holt_event_watch(struct holt *holt, const struct holt_event_options *options, int64_t deadline,
                     struct holt_error *error)
{
    struct holt_event_options given = HOLT_INIT(holt_event_options);
    struct msg_watch_request request;
    const struct messages_call call = {
        .method = &method_event_service_watch,
        .request = &request,
        .deadline = deadline,
        .each = event_take,
        .context = &given,
        .size = sizeof(struct holt_event),
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_watch_request){
        .has_since = given.has_since,
        .since = given.since,
        .since_time_ms = given.has_since ? 0 : (uint64_t)given.since_ms,
        .sandbox_id = given.sandbox,
        .types = given.types,
        .types_count = request_count(given.types),
        .no_follow = given.ends,
    };
    return messages_follow(holt, &call, error);
}
