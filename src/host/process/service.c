// SPDX-License-Identifier: Apache-2.0
#include "host/process/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/observe/event_internal.h"
#include "host/port/port.h"
#include "host/process/record_internal.h"
#include "host/process/table.h"
#include "host/sandbox/sandbox_internal.h"

enum { PROBE_PAUSE_MIN_MS = 5, PROBE_PAUSE_MAX_MS = 200, LISTEN_SIZE = sizeof(":65535") };

struct service {
    struct service *next;
    struct record *record;        /* referenced */
    struct port_forward *forward; /* owned */
};

static void service_free(struct service *service)
{
    port_forward_close(service->forward);
    record_unref(service->record);
    free(service);
}

/* Takes ownership of the forward. */
static void service_add(struct sandbox *sandbox, struct record *record,
                        struct port_forward *forward)
{
    struct service *service = xcalloc(1, sizeof(*service));

    service->record = record_ref(record);
    service->forward = forward;
    lock_take(&sandbox->lock);
    service->next = sandbox->services;
    sandbox->services = service;
    lock_release(&sandbox->lock);
}

/* Removes an ended service (or any) from the list and returns it; NULL: none. */
static struct service *service_take(struct sandbox *sandbox, bool wants_any)
{
    struct service **slot = &sandbox->services, *found;

    lock_take(&sandbox->lock);
    while (*slot && !wants_any && !record_is_over((*slot)->record))
        slot = &(*slot)->next;
    found = *slot;
    if (found)
        *slot = found->next;
    lock_release(&sandbox->lock);
    return found;
}

void services_prune(struct sandbox *sandbox)
{
    struct service *service;

    while ((service = service_take(sandbox, false)))
        service_free(service);
}

void services_close(struct sandbox *sandbox)
{
    struct service *service;

    while ((service = service_take(sandbox, true)))
        service_free(service);
}

/* Formats the address of a forward with this port on the host; 0: any free port. */
static const char *listen_format(char text[LISTEN_SIZE], uint16_t host_port)
{
    (void)snprintf(text, LISTEN_SIZE, ":%u", host_port);
    return text;
}

static int service_start(struct sandbox *sandbox, const struct process_spec *spec,
                         const struct port_forward *forward, struct record **ret, struct err *err)
{
    struct process *process = NULL;
    int r = sandbox_exec(sandbox, spec, &process, err);

    if (r < 0)
        return r;
    *ret = record_ref(process_record(process));
    process_abandon(process);
    if (!forward)
        return 0;
    record_set_address(*ret, port_forward_address(forward), port_forward_port(forward));
    process_table_write(sandbox->host,
                        &(struct process_table_entry){ sandbox->process_table, *ret }, 1);
    return 0;
}

int service_launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                   struct err *err)
{
    struct port_forward *forward = NULL;
    char listen[LISTEN_SIZE];
    int r = 0;

    if (spec->port)
        r = sandbox_forward(sandbox, spec->port, listen_format(listen, spec->host_port), &forward,
                            err);
    if (r < 0)
        return r;
    r = service_start(sandbox, spec, forward, ret, err);
    if (r < 0)
        port_forward_close(forward);
    else if (forward)
        service_add(sandbox, *ret, forward);
    return r;
}

/* A port that another process answers says nothing about this service. If the kernel does not tell
 * who listens, the probe decides alone. */
static int listener_check(struct sandbox *sandbox, const struct record *record, struct err *err)
{
    enum port_listener listener;
    struct err ignored;

    if (sandbox_find_listener(sandbox, record->id, record->spec->port, &listener, &ignored) < 0)
        return 0;
    switch (listener) {
    case PORT_LISTENER_OWN:
        break;
    case PORT_LISTENER_NONE:
        (void)err_set(err, ERR_BUSY, "nothing listens on port %u", record->spec->port);
        return -EAGAIN;
    case PORT_LISTENER_OTHER:
        (void)err_set(err, ERR_BUSY, "another process listens on port %u", record->spec->port);
        return -EAGAIN;
    }
    return 0;
}

/* Returns 0 if the service responds, -EAGAIN if not yet, or another -errno. */
static int service_probe(struct sandbox *sandbox, const struct record *record,
                         const struct readiness_spec *spec, uint64_t deadline_ms, struct err *err)
{
    const struct port_patience patience = { deadline_ms, spec->watch_fd };
    int r = listener_check(sandbox, record, err);

    if (r < 0)
        return r;
    r = sandbox_probe(sandbox, record->spec->port, spec->http_path, &patience, err);
    return r < 0 && r != -ECANCELED && err->kind == ERR_BUSY ? -EAGAIN : r;
}

static bool service_is_over(struct record *record, const struct readiness_spec *spec)
{
    struct record_info info;

    record_get(record, &info);
    return info.is_over || (spec->is_first_run && info.restarts > 0);
}

int service_wait_ready(struct sandbox *sandbox, struct record *record,
                       const struct readiness_spec *spec, enum readiness *ret, struct err *err)
{
    uint64_t deadline_ms = clock_ms() + spec->timeout_ms;
    int pause_ms = PROBE_PAUSE_MIN_MS;

    while (!service_is_over(record, spec)) {
        struct pollfd hang_up = { .fd = spec->watch_fd, .events = POLLRDHUP };
        int r = service_probe(sandbox, record, spec, deadline_ms, err);

        *ret = r == 0 ? SERVICE_READY : SERVICE_STARTING;
        if (r == 0)
            sandbox_event(
                sandbox, EVENT_PROCESS_READY,
                json_pack("{s:s, s:i}", "process", record->id, "port", (int)record->spec->port));
        if (r == -EAGAIN && clock_ms() >= deadline_ms)
            return 0;
        /* If the sandbox has ended, the probe fails, but the end of the process counts. */
        if (r != -EAGAIN && (r == 0 || !record_is_over(record)))
            return r;
        if (poll(&hang_up, 1, pause_ms) > 0)
            return -ECANCELED;
        pause_ms = pause_ms < PROBE_PAUSE_MAX_MS ? 2 * pause_ms : PROBE_PAUSE_MAX_MS;
    }
    *ret = SERVICE_ENDED;
    return 0;
}

/* --- servers that are started when they are needed ---------------------------------------------
 */

void server_find(struct sandbox *sandbox, const char *name, struct server_run *ret)
{
    char prefix[PROCESS_TAG_MAX / 2];
    size_t count, len = (size_t)snprintf(prefix, sizeof(prefix), "holt-%s-", name);
    cleanup_free struct record **list = process_table_list(sandbox->process_table, &count);
    unsigned long number = 0;

    *ret = (struct server_run){ .is_known = false };
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(list[i], &info);
        if (info.spec->key && strncmp(info.spec->key, prefix, len) == 0) {
            number = strtoul(info.spec->key + len, NULL, 10);
            ret->is_known = true;
            ret->is_over = info.is_over;
            ret->started_ms = info.started_ms;
            ret->end = info.end;
        }
        record_unref(list[i]);
    }
    (void)snprintf(ret->next_key, sizeof(ret->next_key), "%s%lu", prefix, number + 1);
}

bool server_was_lost(const struct server_run *run)
{
    const struct process_end *end = &run->end;

    if (!run->is_known || !run->is_over)
        return false;
    return end->outcome == OUTCOME_KILLED ? end->killer != KILLER_USER : end->exit_code != 0;
}

const char *server_reason(const struct server_run *run, char text[static SERVER_REASON_SIZE])
{
    (void)snprintf(text, SERVER_REASON_SIZE, "HOLT_RESTARTED=%s",
                   run->is_over && run->end.reason[0] ? run->end.reason : "the server has ended");
    return text;
}

static void service_recover(struct sandbox *sandbox, struct record *record)
{
    char listen[LISTEN_SIZE];
    struct port_forward_spec spec = {
        .port = record->spec->port,
        .listen = listen_format(listen, record->host_port),
        .sandbox = sandbox,
        .owner = sandbox->info.id,
    };
    struct port_forward *forward = NULL;
    struct err err = { 0 };
    int r;

    r = port_forward_open(sandbox->machine, &spec, &forward, &err);
    if (r < 0) { /* the port is in use */
        spec.listen = NULL;
        r = port_forward_open(sandbox->machine, &spec, &forward, &err);
    }
    if (r < 0) {
        log_warn("cannot forward the port of process '%s': %s", record->id, err.msg);
        return;
    }
    record_set_address(record, port_forward_address(forward), port_forward_port(forward));
    service_add(sandbox, record, forward);
}

void services_recover(struct sandbox *sandbox)
{
    size_t count;
    cleanup_free struct record **list = process_table_list(sandbox->process_table, &count);

    for (size_t i = 0; i < count; i++) {
        if (!record_is_over(list[i]) && list[i]->host_port > 0)
            service_recover(sandbox, list[i]);
        record_unref(list[i]);
    }
}
