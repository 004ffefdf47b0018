// SPDX-License-Identifier: Apache-2.0
/* The methods of HostService that look at the machine: its last hour, and the checks of the doctor.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/observe/history.h"
#include "store/command.h"

enum { DOCTOR_MS = 120 * 1000, DOCTOR_BYTES_MAX = 256 * 1024 };

static struct msg_history_sample sample_message(const struct history_sample *sample)
{
    return (struct msg_history_sample){
        .at_ms = sample->at_ms,
        .cpu = sample->cpu,
        .memory_used_bytes = sample->memory_used,
        .memory_total_bytes = sample->memory_total,
        .load = sample->load,
        .storage_used_bytes = sample->storage_used,
        .storage_available_bytes = sample->storage_available,
        .sandboxes_active = sample->active,
        .sandboxes_paused = sample->paused,
        .sandboxes_stopped = sample->stopped,
        .sandboxes_other = sample->other,
        .runs = sample->runs,
        .processes = sample->processes,
        .pool_ready = sample->pool_ready,
        .pool_size = sample->pool_size,
    };
}

static size_t samples_wanted(uint32_t seconds)
{
    uint64_t count = (uint64_t)seconds * 1000 / HISTORY_INTERVAL_MS;

    return seconds == 0 || count > HISTORY_SAMPLES ? HISTORY_SAMPLES : (size_t)count;
}

int host_service_history(const struct call *call, const struct msg_history_request *request,
                         struct err *err)
{
    cleanup_free struct history_sample *samples = xcalloc(HISTORY_SAMPLES, sizeof(*samples));
    struct msg_history_response reply = {
        .interval_ms = HISTORY_INTERVAL_MS,
        .cpus = (uint32_t)get_nprocs(),
    };
    struct msg_history_sample *messages;

    if (!caller_may_watch_host(call->caller))
        return err_set(err, ERR_DENIED,
                       "the history is that of the whole host: it needs the role "
                       "admin and a token that is not limited to labels");
    reply.samples_count = host_read_history(call->host, samples, samples_wanted(request->seconds));
    messages = arena_take(call->arena, reply.samples_count + 1, sizeof(*messages));
    for (size_t i = 0; i < reply.samples_count; i++)
        messages[i] = sample_message(&samples[i]);
    reply.samples = messages;
    return call_reply(call, SCHEMA_OF(msg_history_response, &reply), err);
}

/* --- doctor ----------------------------------------------------------------------------------- */

static int state_path(struct host *host, char ret[static PATH_MAX], struct err *err)
{
    cleanup_free char *link = xasprintf("/proc/self/fd/%d", host_state_fd(host));
    ssize_t n = readlink(link, ret, PATH_MAX - 1);

    if (n < 0)
        return err_sys(err, -errno, "find the state directory");
    ret[n] = '\0';
    return 0;
}

/* The checks fork and run sandboxes, so they are for a process with one thread: this program
 * itself, as `holt doctor` runs it. */
static int doctor_execute(struct host *host, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(DOCTOR_BYTES_MAX);
    struct command_result result = { 0 };
    char state[PATH_MAX];
    const char *const args[] = { "/proc/self/exe", "--doctor", "--json", "--state", state, NULL };
    int r = state_path(host, state, err);

    if (r < 0)
        return r;
    r = command_run(args, DOCTOR_MS, &output, &result);
    if (r < 0)
        return err_sys(err, r, "run the doctor");
    if (json_parse_object(output.data ? output.data : "", output.len, ret, err) < 0)
        return err_set(err, ERR_INTERNAL, "the doctor failed: %.160s", result.stderr_text);
    return 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static int report_reply(const struct call *call, const json_t *report, struct err *err)
{
    const json_t *checks = json_object_get(report, "checks");
    struct msg_doctor_response reply = {
        .can_run = json_is_true(json_object_get(report, "canRun")),
        .checks_count = json_array_size(checks),
    };
    struct msg_doctor_check *messages;

    messages = arena_take(call->arena, reply.checks_count + 1, sizeof(*messages));
    for (size_t i = 0; i < reply.checks_count; i++) {
        const json_t *check = json_array_get(checks, i);

        messages[i] = (struct msg_doctor_check){
            .check = text_of(check, "check"),
            .verdict = text_of(check, "verdict"),
            .detail = text_of(check, "detail"),
            .remedy = text_of(check, "remedy"),
        };
    }
    reply.checks = messages;
    return call_reply(call, SCHEMA_OF(msg_doctor_response, &reply), err);
}

int host_service_doctor(const struct call *call, const struct msg_doctor_request *request,
                        struct err *err)
{
    static atomic_flag is_running = ATOMIC_FLAG_INIT;
    cleanup_json json_t *report = NULL;
    int r;

    (void)request;
    if (atomic_flag_test_and_set(&is_running))
        return err_set(err, ERR_BUSY, "the doctor is already running for another caller");
    r = doctor_execute(call->host, &report, err);
    atomic_flag_clear(&is_running);
    return r < 0 ? r : report_reply(call, report, err);
}
