// SPDX-License-Identifier: Apache-2.0
#include "daemon/event_log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/observe/event.h"
#include "host/observe/event_ring.h"

struct event_log {
    struct event_reader *reader;
    struct thread thread;
};

static void event_print(const struct event *event)
{
    bool is_good = event->type == EVENT_STORAGE_OK || event->type == EVENT_RESOURCE_OK ||
                   event->type == EVENT_VOLUME_ADOPTED;
    const char *type = event_type_name(event->type);

    if (is_good)
        log_info("%s %s", type, event->fields);
    else if (event->sandbox[0])
        log_warn("%s %s %s", type, event->sandbox, event->fields);
    else
        log_warn("%s %s", type, event->fields);
}

static void event_log_main(void *argument)
{
    struct event_log *log = argument;
    uint64_t lost;

    do {
        struct event *event;

        while ((event = event_reader_take(log->reader, &lost))) {
            event_print(event);
            event_unref(event);
        }
    } while (event_reader_wait(log->reader, -1, -1) != -ESHUTDOWN);
}

int event_log_start(struct host *host, struct event_log **ret, struct err *err)
{
    const struct event_reader_spec spec = {
        .start = EVENT_SINCE_TIME,
        .types =
            event_types_matching("storage.*") | event_types_matching("resource.*") |
            event_types_matching("sandbox.recovered") | event_types_matching("sandbox.failed") |
            event_types_matching("sandbox.exhausted") | event_types_matching("volume.unrecorded") |
            event_types_matching("registry.incomplete") | event_types_matching("volume.adopted"),
    };
    struct event_log *log = xcalloc(1, sizeof(*log));
    int r = host_watch(host, &caller_root, &spec, &log->reader, err);

    if (r == 0) {
        r = thread_start(&log->thread, "holt-log", event_log_main, log);
        if (r < 0)
            (void)err_sys(err, r, "start the event log");
    }
    if (r < 0) {
        event_reader_close(log->reader);
        free(log);
        return r;
    }
    *ret = log;
    return 0;
}

void event_log_stop(struct event_log *log)
{
    if (!log)
        return;
    thread_join(&log->thread);
    event_reader_close(log->reader);
    free(log);
}
