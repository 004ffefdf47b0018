// SPDX-License-Identifier: Apache-2.0
/* The HTTP server over real sockets, with a host of cardboard: what calls the host is compiled into
 * this test under other names, so that both can be linked. */
#define holt_frontend test_holt_frontend
#define route_find table_route_find
#define route_at test_route_at
#define route_index table_route_index
#define host_service_health test_host_service_health
#define host_service_audit test_host_service_audit
#define sandbox_service_create test_sandbox_service_create
#define sandbox_service_get test_sandbox_service_get
#define sandbox_service_list test_sandbox_service_list
#define sandbox_service_pause test_sandbox_service_pause
#define sandbox_service_resume test_sandbox_service_resume
#define sandbox_service_stop test_sandbox_service_stop
#define sandbox_service_start test_sandbox_service_start
#define sandbox_service_destroy test_sandbox_service_destroy
#define sandbox_service_fork test_sandbox_service_fork
#define template_service_commit test_template_service_commit
#define sandbox_service_run test_sandbox_service_run
#define process_stream_run test_process_stream_run
#define process_stream_exec test_process_stream_exec
#define process_stream_attach test_process_stream_attach
#define process_stream_writer test_process_stream_writer
#define process_start_or_join test_process_start_or_join
#define process_join test_process_join
#define process_written_get test_process_written_get
#define process_ended_message test_process_ended_message
#define process_info_message test_process_info_message
#define process_started_add test_process_started_add
#define process_output_add test_process_output_add
#define process_gap_add test_process_gap_add
#define process_size_add test_process_size_add
#define process_ended_add test_process_ended_add
#define process_service_exec test_process_service_exec
#define process_service_attach test_process_service_attach
#define process_service_send_input test_process_service_send_input
#define process_service_signal test_process_service_signal
#define process_service_resize test_process_service_resize
#define template_service_import test_template_service_import
#define template_service_list test_template_service_list
#define template_service_remove test_template_service_remove
#define template_service_share test_template_service_share

#define host_health stub_host_health
#define host_state_fd stub_host_state_fd
#define host_store stub_host_store
#define host_event stub_host_event
#define owner_event stub_owner_event
#define machine_create stub_machine_create
#define machine_find stub_machine_find
#define machine_id stub_machine_id
#define machine_destroy stub_machine_destroy
#define machine_unref stub_machine_unref
#define process_start stub_process_start
#define process_find stub_process_find
#define sandbox_find stub_sandbox_find
#define sandbox_find_process stub_sandbox_find_process
#define sandbox_exec stub_sandbox_exec
#define sandbox_attach stub_sandbox_attach
#define sandbox_detach stub_sandbox_detach
#define sandbox_get_info stub_sandbox_get_info
#define sandbox_unref stub_sandbox_unref
#define process_id stub_process_id
#define process_next stub_process_next
#define process_record stub_process_record
#define record_ref stub_record_ref
#define record_unref stub_record_unref
#define record_get stub_record_get
#define process_send_input stub_process_send_input
#define process_offer_input stub_process_offer_input
#define process_signal stub_process_signal
#define viewer_join stub_viewer_join
#define viewer_leave stub_viewer_leave
#define viewer_resize stub_viewer_resize
#define process_unref stub_process_unref
#define owned_template_list stub_owned_template_list
#define owned_template_remove stub_owned_template_remove
#define owned_template_shares stub_owned_template_shares
#define owned_template_share stub_owned_template_share
#define owned_template_reserve stub_owned_template_reserve
#define owned_template_release stub_owned_template_release
#define host_get_template_owner stub_host_get_template_owner
#define template_import stub_template_import

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "../../../src/api/route.c" // NOLINT(bugprone-suspicious-include)
#include "unit/http/upload.h"
#include "unit/http/viewers.h"

#undef route_find
#undef route_index
#define route_find upload_route_find
#define route_index upload_route_index

#include "../../../src/api/frontend.c"                 // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/host.c"                     // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/message/process_messages.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/message/process_start.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/process.c"                  // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/sandbox.c"                  // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/stream/process_stream.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/template.c"                 // NOLINT(bugprone-suspicious-include)
#include "api/pages.h"
#include "base/log.h"
#include "base/text/base64.h"
#include "check.h"
#include "http/exchange.h"
#include "http/listen.h"
#include "http/server.h"
#include "unit/http/client.h"
#include "unit/http/counted.h"

enum { FLOOD_EVENTS = 40 };

struct machine {
    atomic_int references;
};

struct process {
    atomic_int references;
    char command[32];
    int step;
};

static atomic_int sandbox_refs, attached;
static atomic_int created, destroyed, freed, inputs, signals, input_bytes;

void stub_host_health(struct host *host, const struct caller *caller, struct host_health *ret)
{
    (void)host, (void)caller;
    *ret = (struct host_health){
        .sandboxes = 3,
        .processes = 9,
        .pool_ready = 2,
        .pool_size = 4,
        .uptime_ms = UINT64_C(1) << 60,
        .runtime = "native",
        .storage_backend = "btrfs",
        .storage_state = "ONLINE",
        .storage_used = UINT64_C(1) << 40,
        .storage_available = 7,
        .status = HEALTH_DEGRADED,
        .errors = "the storage is almost full\nthe pool\xff is empty\n",
    };
}

int stub_host_state_fd(const struct host *host)
{
    (void)host;
    return -EBADF;
}

void stub_host_event(struct host *host, enum event_type type, json_t *fields)
{
    (void)host;
    CHECK(type == EVENT_TEMPLATE_IMPORTED);
    json_decref(fields);
}

void stub_owner_event(struct host *host, const char *owner, enum event_type type, json_t *fields)
{
    (void)owner;
    stub_host_event(host, type, fields);
}

static int always_open(void *context, struct err *err)
{
    (void)context, (void)err;
    return 0;
}

struct store *stub_host_store(struct host *host)
{
    return (struct store *)host;
}

int stub_machine_create(struct host *host, const struct machine_spec *spec, struct machine **ret,
                        struct err *err)
{
    (void)host;
    if (spec->template)
        return err_set(err, ERR_NOT_FOUND, "no template '%s'", spec->template);
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->references = 1;
    created++;
    return 0;
}

int stub_machine_find(struct host *host, const struct caller *caller, const char *id,
                      struct machine **ret, struct err *err)
{
    (void)host, (void)caller;
    if (strcmp(id, "box") != 0)
        return err_set(err, ERR_NOT_FOUND, "no machine '%s'", id);
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->references = 1;
    return 0;
}

int stub_sandbox_find(struct host *host, const struct caller *caller, const char *id,
                      struct sandbox **ret, struct err *err)
{
    (void)host, (void)caller;
    if (strcmp(id, "stay") != 0)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%s'", id);
    *ret = xcalloc(1, 1);
    sandbox_refs++;
    return 0;
}

void stub_sandbox_unref(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    free(sandbox);
    sandbox_refs--;
}

void stub_sandbox_attach(struct sandbox *sandbox)
{
    (void)sandbox;
    attached++;
}

/* The host ends what the process started; here it is only given back. */
void stub_sandbox_detach(struct sandbox *sandbox, struct process *process)
{
    (void)sandbox;
    process_unref(process);
    attached--;
}

void stub_sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    (void)sandbox, (void)wants_space;
    *ret = (struct sandbox_info){ .id = "sb-1" };
}

const char *stub_machine_id(const struct machine *sandbox)
{
    (void)sandbox;
    return "box";
}

void stub_machine_destroy(struct machine *sandbox)
{
    CHECK(sandbox->references > 0);
    destroyed++;
}

void stub_machine_unref(struct machine *sandbox)
{
    if (sandbox && --sandbox->references == 0)
        free(sandbox);
}

int stub_process_start(struct machine *sandbox, const struct process_spec *spec,
                       struct process **ret, struct err *err)
{
    (void)sandbox;
    if (strcmp(spec->args[0], "broken") == 0)
        return err_set(err, ERR_EXHAUSTED, "no room");
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->references = 1;
    (void)snprintf((*ret)->command, sizeof((*ret)->command), "%s", spec->args[0]);
    return 0;
}

int stub_process_find(struct machine *sandbox, const char *id, struct process **ret,
                      struct err *err)
{
    (void)sandbox;
    if (strcmp(id, "p1") != 0)
        return err_set(err, ERR_NOT_FOUND, "no process '%s'", id);
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->references = 1;
    return 0;
}

int stub_sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec,
                      struct process **ret, struct err *err)
{
    (void)sandbox;
    CHECK(attached == 1, "(a sandbox must not be idle while its process is started)");
    if (strcmp(spec->args[0], "paused") == 0)
        return err_refuse(err, CAUSE_SESSION_PAUSED, "it is paused");
    return stub_process_start(NULL, spec, ret, err);
}

int stub_sandbox_find_process(struct sandbox *sandbox, const char *id, struct process **ret,
                              struct err *err)
{
    CHECK(sandbox);
    return stub_process_find(NULL, id, ret, err);
}

const char *stub_process_id(const struct process *process)
{
    (void)process;
    return "p1";
}

/* Here a process and its record are the same. */
struct record *stub_process_record(struct process *process)
{
    return (struct record *)process;
}

struct record *stub_record_ref(struct record *record)
{
    ((struct process *)record)->references++;
    return record;
}

void stub_record_unref(struct record *record)
{
    stub_process_unref((struct process *)record);
}

void stub_record_get(struct record *record, struct record_info *ret)
{
    static const struct process_spec spec = { .args = NULL };

    (void)record;
    *ret = (struct record_info){
        .id = "p1",
        .spec = &spec,
        .streams = { { .total = 5, .head_end = 5, .tail_start = 5 }, { 6, 2, 4 } },
    };
}

static void process_end(struct reader_event *ret)
{
    ret->kind = READER_ENDED;
    ret->end = (struct process_end){
        .outcome = OUTCOME_EXITED,
        .exit_code = 7,
        .duration_ms = 12,
        .cpu_ms = 3,
        .memory_peak_bytes = UINT64_C(1) << 40,
    };
}

/* "wait" lasts until its client goes, "flood" fills the buffer again and again, "talk" says a word
 * on each stream. */
int stub_process_next(struct process *process, int watch_fd, void *data, size_t size,
                      struct reader_event *ret)
{
    struct pollfd watch = { watch_fd, POLLRDHUP, 0 };
    bool is_flood = strcmp(process->command, "flood") == 0;

    process->step++;
    if (strcmp(process->command, "wait") == 0) {
        CHECK(poll(&watch, 1, 300 * 1000) == 1);
        return -ECANCELED;
    }
    if (process->step > (is_flood ? FLOOD_EVENTS : 2) || strcmp(process->command, "true") == 0) {
        process_end(ret);
        return 0;
    }
    ret->kind = READER_DATA;
    ret->stream = process->step % 2 ? PROCESS_OUT : PROCESS_ERR;
    ret->len = is_flood ? size : 5;
    memset(data, process->step % 2 ? 'o' : 'e', ret->len);
    return 0;
}

int stub_process_send_input(struct process *process, const void *data, size_t len, bool eof,
                            struct err *err)
{
    (void)process, (void)data, (void)err;
    input_bytes += (int)len + (eof ? 1000000 : 0);
    inputs++;
    return 0;
}

// NOLINTNEXTLINE(readability-function-size)
int stub_process_offer_input(struct process *process, int watch_fd, const void *data, size_t len,
                             bool eof, struct err *err)
{
    (void)watch_fd;
    return stub_process_send_input(process, data, len, eof, err);
}

int stub_process_signal(struct process *process, int signal, bool tree, struct err *err)
{
    (void)process, (void)err;
    signals += signal + (tree ? 1000 : 0);
    return 0;
}

void stub_process_unref(struct process *process)
{
    if (!process || --process->references > 0)
        return;
    free(process);
    freed++;
}

#include "unit/http/templates.h"

static char dir[] = "/tmp/holt-api-test-XXXXXX";
static uint16_t tcp_port;
static struct api api;
static struct http_server *http;
static struct token_store *tokens;

static int tcp_connect(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(tcp_port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

#include "unit/http/tcp.h"

static void health_is_answered(void)
{
    expect("HostService/Health", "{}", "200",
           "{\"status\":\"degraded\",\"version\":\"" HOLT_VERSION
           "\",\"sandboxes\":3,\"poolReady\":2,\"runtime\":\"native\",\"uptimeMs\":"
           "\"1152921504606846976\",\"storage\":{\"backend\":\"btrfs\",\"usedBytes\":"
           "\"1099511627776\",\"availableBytes\":\"7\",\"state\":\"ONLINE\",\"sizeBytes\":"
           "\"1099511627783\",\"usedPercent\":99},\"errors\":[\"the storage is almost full\","
           "\"the pool? is empty\"],\"processes\":9,\"poolSize\":4,\"tools\":0}");
    expect("HostService/Health", "{\"x\":1}", "400", "unknown field 'x'");
}

static void healthz_is_plain(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
    struct request request = { "GET", "/healthz", "x/y", "Connection: close\r\n", "", 0 };

    exchange_on(local_connect(), &request, &reply);
    CHECK(strncmp(reply.data, "HTTP/1.1 200", 12) == 0 && strstr(reply.data, "\r\n\r\nok\n"));
}

static void what_is_no_call_is_refused_by_status(void)
{
    static const struct {
        struct request request;
        const char *status;
        const char *content;
    } cases[] = {
        { { "POST", "/holt.v1.HostService/Nope", CONNECT_UNARY_TYPE, NULL, "{}", 2 },
          "404",
          "\"code\":\"unimplemented\"" },
        { { "POST", "/", CONNECT_UNARY_TYPE, NULL, "", 0 }, "404", "unimplemented" },
        { { "GET", "/holt.v1.HostService/Health", CONNECT_UNARY_TYPE, NULL, "", 0 },
          "405",
          "Allow: POST" },
        { { "POST", "/healthz", CONNECT_UNARY_TYPE, NULL, "", 0 }, "404", "unimplemented" },
        { { "POST", "/holt.v1.HostService/Health", "text/plain", NULL, "{}", 2 },
          "415",
          "Accept-Post: application/json" },
        { { "POST", "/holt.v1.SandboxService/Run", CONNECT_UNARY_TYPE, NULL, "{}", 2 },
          "415",
          "Accept-Post: application/connect+json" },
        { { "POST", "/holt.v1.HostService/Health", CONNECT_UNARY_TYPE,
            "Connect-Protocol-Version: 2\r\n", "{}", 2 },
          "400",
          "invalid_argument" },
        { { "POST", "/holt.v1.HostService/Health", CONNECT_UNARY_TYPE, "Content-Encoding: gzip\r\n",
            "{}", 2 },
          "501",
          "only identity" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);

        exchange_on(local_connect(), &cases[i].request, &reply);
        CHECK(reply.len > 0 && strncmp(reply.data + 9, cases[i].status, 3) == 0, "(%s)",
              reply.data);
        CHECK(strstr(reply.data, cases[i].content), "(%s)", reply.data);
    }
}

static void a_body_beyond_the_limit_is_refused(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
    cleanup_free char *body = xcalloc(1, EXCHANGE_BODY_MAX + 1);
    struct request request = {
        "POST", "/holt.v1.HostService/Health", CONNECT_UNARY_TYPE, "Connection: close\r\n",
        body,   EXCHANGE_BODY_MAX + 1
    };

    exchange_on(local_connect(), &request, &reply);
    CHECK(reply.len > 0 && strncmp(reply.data, "HTTP/1.1 429", 12) == 0, "(%s)", reply.data);
    CHECK(strstr(reply.data, "\"resource_exhausted\""));
}

static void a_chunked_body_beyond_the_limit_is_refused(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
    static const char head[] = "POST /holt.v1.HostService/Health HTTP/1.1\r\nHost: holt\r\n"
                               "Content-Type: application/json\r\nConnection: close\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    cleanup_free char *chunk = xcalloc(1, 65536 + 16);
    int fd = local_connect();

    (void)snprintf(chunk, 65536 + 16, "10000\r\n%65536s\r\n", "");
    text_send(fd, head, strlen(head));
    for (int i = 0; i < 65; i++)
        text_send(fd, chunk, 7 + 65536 + 2);
    text_send(fd, "0\r\n\r\n", 5);
    reply_read(fd, &reply);
    CHECK(close(fd) == 0);
    CHECK(reply.len > 0 && strncmp(reply.data, "HTTP/1.1 429", 12) == 0, "(%s)", reply.data);
}

static void a_run_streams_its_events_in_order(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);

    stream("SandboxService/Run", "{\"process\":{\"args\":[\"talk\"]}}", &lines);
    CHECK_TEXT(lines.data, "{\"started\":{\"sandboxId\":\"box\",\"processId\":\"p1\"}}\n"
                           "{\"stdout\":\"b29vb28=\"}\n"
                           "{\"stderr\":\"ZWVlZWU=\"}\n"
                           "{\"ended\":{\"outcome\":\"exited\",\"exitCode\":7,\"signal\":0,"
                           "\"reason\":\"\",\"durationMs\":\"12\",\"cpuMs\":\"3\","
                           "\"memoryPeakBytes\":\"1099511627776\",\"killedBy\":"
                           "\"none\",\"stdoutBytes\":\"5\",\"stderrBytes\":\"6\","
                           "\"truncated\":true}}\n"
                           "end: {}\n");
}

static void much_output_arrives_whole(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);
    size_t letters = 0;

    stream("SandboxService/Run", "{\"process\":{\"args\":[\"flood\"]}}", &lines);
    for (size_t i = 0; i + 4 <= lines.len; i++)
        if (memcmp(lines.data + i, "b29v", 4) == 0 || memcmp(lines.data + i, "ZWVl", 4) == 0)
            letters += 3;
    CHECK(letters == (size_t)FLOOD_EVENTS * RUN_OUTPUT_BYTES, "(%zu)", letters);
}

static void a_run_that_fails_to_start_ends_with_the_error(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);

    stream("SandboxService/Run",
           "{\"sandbox\":{\"template\":\"gone\"},\"process\":{\"args\":[\"x\"]}}", &lines);
    CHECK_TEXT(lines.data, "end: {\"error\":{\"code\":\"not_found\",\"message\":\"no template "
                           "'gone'\",\"retryable\":false}}\n");
    stream("SandboxService/Run", "{\"process\":{\"args\":[\"broken\"]}}", &lines);
    CHECK(strstr(lines.data, "resource_exhausted"));
    stream("SandboxService/Run", "{\"process\":{}}", &lines);
    CHECK(strstr(lines.data, "invalid_argument"));
    stream("SandboxService/Run", "nonsense", &lines);
    CHECK(strstr(lines.data, "invalid_argument"));
    counter_wait(&destroyed, created);
}

static void a_request_that_is_no_envelope_is_refused(void)
{
    static const struct {
        const char *body;
        size_t len;
    } bodies[] = {
        { "", 0 },
        { "\0\0\0", 3 },
        { "\0\0\0\0\0", 5 },
        { "\0\0\0\0\2{", 6 },
        { "\1\0\0\0\2{}", 7 },
        { "\2\0\0\0\2{}", 7 },
        { "\0\377\377\377\377", 5 },
        { "\0\0\0\0\2{}x", 8 },
        { "{}", 2 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
        struct request request = { "POST",
                                   "/holt.v1.SandboxService/Run",
                                   CONNECT_STREAM_TYPE,
                                   "Connection: close\r\n",
                                   bodies[i].body,
                                   bodies[i].len };
        struct envelope envelope = { 0 };
        char *at;
        size_t len;

        exchange_on(local_connect(), &request, &reply);
        CHECK(strncmp(reply.data, "HTTP/1.1 200", 12) == 0, "(%zu: %s)", i, reply.data);
        at = chunks_join(&reply, &len);
        CHECK(envelope_parse(at, len, &envelope) == (long)len && envelope.is_end);
        CHECK(memmem(envelope.payload, envelope.len, "\"error\"", 7));
    }
}

static int run_open(const char *command)
{
    cleanup_free char *message = xasprintf("{\"process\":{\"args\":[\"%s\"]}}", command);

    return stream_open("/holt.v1.SandboxService/Run", message);
}

static void a_client_that_vanishes_takes_its_sandbox_along(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(65536);
    int before = destroyed, released = freed;
    int fd = run_open("wait");

    reply_wait(fd, &reply, "\"started\"");
    CHECK(destroyed == before);
    CHECK(close(fd) == 0);
    counter_wait(&destroyed, before + 1);
    counter_wait(&freed, released + 1);
}

static void a_client_that_stops_reading_and_vanishes_is_noticed(void)
{
    int before = destroyed;
    int fd = run_open("flood");

    (void)usleep(50 * 1000);
    CHECK(destroyed == before);
    CHECK(close(fd) == 0);
    counter_wait(&destroyed, before + 1);
}

static void an_exec_streams_as_a_run_does_and_the_sandbox_stays(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);
    int before = destroyed;

    signals = 0;
    stream("ProcessService/Exec", "{\"sandboxId\":\"stay\",\"process\":{\"args\":[\"talk\"]}}",
           &lines);
    CHECK(strstr(lines.data, "{\"started\":{\"sandboxId\":\"sb-1\",\"processId\":\"p1\"}}\n"
                             "{\"stdout\":\"b29vb28=\"}\n{\"stderr\":\"ZWVlZWU=\"}\n"
                             "{\"ended\":{\"outcome\":\"exited\",\"exitCode\":7"),
          "(%s)", lines.data);
    counter_wait(&sandbox_refs, 0);
    CHECK(attached == 0 && destroyed == before && signals == 0);
}

static void an_exec_that_is_refused_says_why_to_programs_too(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);

    stream("ProcessService/Exec", "{\"sandboxId\":\"stay\",\"process\":{\"args\":[\"paused\"]}}",
           &lines);
    CHECK(strstr(lines.data, "end: {\"error\":{\"code\":\"failed_precondition\",\"message\":"
                             "\"it is paused\",\"cause\":\"SessionPaused\",\"remedy\":"));
    CHECK(attached == 0 && sandbox_refs == 0);
    stream("ProcessService/Exec", "{\"sandboxId\":\"no\",\"process\":{\"args\":[\"x\"]}}", &lines);
    CHECK(strstr(lines.data, "SessionNotFound"));
    stream("ProcessService/Exec", "{\"process\":{\"args\":[\"x\"]}}", &lines);
    CHECK(strstr(lines.data, "'sandboxId' is missing"));
    stream("ProcessService/Exec", "{\"sandboxId\":\"stay\"}", &lines);
    CHECK(strstr(lines.data, "'process' is missing"));
    stream("ProcessService/Exec", "{\"sandboxId\":\"stay\",\"sandbox\":{}}", &lines);
    CHECK(strstr(lines.data, "unknown field 'sandbox'"));
}

static void an_exec_that_is_left_is_handed_back_to_its_sandbox(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(65536);
    int before = destroyed;
    int fd = stream_open("/holt.v1.ProcessService/Exec",
                         "{\"sandboxId\":\"stay\",\"process\":{\"args\":[\"wait\"]}}");

    reply_wait(fd, &reply, "\"started\"");
    CHECK(attached == 1);
    CHECK(close(fd) == 0);
    counter_wait(&sandbox_refs, 0);
    CHECK(attached == 0 && destroyed == before);
}

static void a_connection_serves_again_after_a_stream(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(65536);
    struct request request = {
        "POST", "/holt.v1.HostService/Health", CONNECT_UNARY_TYPE, NULL, "{}", 2
    };
    int fd = run_open("true");

    reply_wait(fd, &reply, "\r\n0\r\n\r\n");
    buf_clear(&reply);
    for (int i = 0; i < 3; i++) {
        request_send(fd, &request);
        reply_wait(fd, &reply, "\"tools\":0}");
        CHECK(strncmp(reply.data, "HTTP/1.1 200", 12) == 0);
        buf_clear(&reply);
    }
    CHECK(close(fd) == 0);
}

static void input_signals_and_sizes_reach_the_process(void)
{
#define NAMES "\"sandboxId\":\"box\",\"processId\":\"p1\""
    expect("ProcessService/SendInput", "{" NAMES ",\"data\":\"aGVsbG8=\",\"eof\":true}", "200",
           "\r\n\r\n{}");
    CHECK(inputs == 1 && input_bytes == 1000005);
    signals = 0;
    expect("ProcessService/Signal", "{" NAMES ",\"signal\":15,\"tree\":true}", "200", "{}");
    CHECK(signals == 1015);
    expect("ProcessService/Resize", "{" NAMES ",\"size\":{\"rows\":24,\"columns\":80}}", "200",
           "{}");
    CHECK(resizes == 24080);
    expect("ProcessService/Resize", "{" NAMES ",\"size\":{\"rows\":1,\"columns\":1}}", "400",
           "no terminal");
    expect("ProcessService/Resize", "{" NAMES "}", "400", "'size' is missing");
    expect("ProcessService/Signal", "{" NAMES ",\"signal\":65}", "400", "at most 64");
    signals = 0;
    expect("ProcessService/Signal", "{" NAMES "}", "200", "{}");
    CHECK(signals == SIGTERM);
    expect("ProcessService/SendInput", "{" NAMES ",\"data\":\"a\"}", "400", "base64");
    expect("ProcessService/SendInput", "{\"processId\":\"p1\",\"eof\":true}", "400",
           "'sandboxId' is missing");
    expect("ProcessService/SendInput", "{\"sandboxId\":\"no\",\"processId\":\"p1\",\"eof\":true}",
           "404",
           "{\"code\":\"not_found\",\"message\":\"no sandbox 'no'\",\"cause\":"
           "\"SessionNotFound\",\"remedy\":\"list sandboxes with 'holt ls'");
    signals = 0;
    expect("ProcessService/Signal", "{\"sandboxId\":\"stay\",\"processId\":\"p1\",\"signal\":2}",
           "200", "{}");
    CHECK(signals == 2 && sandbox_refs == 0);
    expect("ProcessService/Signal", "{\"sandboxId\":\"stay\",\"processId\":\"p2\",\"signal\":2}",
           "404", "no process 'p2'");
    expect("ProcessService/Signal", "{\"sandboxId\":\"../x\",\"processId\":\"p1\",\"signal\":2}",
           "400", "cannot be the id");
    expect("ProcessService/Signal", "{\"sandboxId\":\"box\",\"processId\":\"p2\",\"signal\":9}",
           "404", "no process 'p2'");
}

static void input_is_bounded_to_the_byte(void)
{
    cleanup_with(buf_done) struct buf data = BUF_INIT(1 << 20), body = BUF_INIT(1 << 20);
    cleanup_free char *zeros = xcalloc(1, PROCESS_INPUT_MAX + 1);

    input_bytes = 0;
    CHECK(base64_encode(&data, zeros, PROCESS_INPUT_MAX) == 0);
    CHECK(buf_printf(&body, "{" NAMES ",\"data\":\"%s\"}", data.data) == 0);
    expect("ProcessService/SendInput", body.data, "200", "{}");
    CHECK(input_bytes == PROCESS_INPUT_MAX);
    buf_clear(&data);
    buf_clear(&body);
    CHECK(base64_encode(&data, zeros, PROCESS_INPUT_MAX + 1) == 0);
    CHECK(buf_printf(&body, "{" NAMES ",\"data\":\"%s\"}", data.data) == 0);
    expect("ProcessService/SendInput", body.data, "429", "longer than 65536");
}

static void templates_are_listed_and_removed(void)
{
    expect(
        "TemplateService/List", "{}", "200",
        "{\"templates\":[{\"name\":\"debian\",\"kind\":\"imported\",\"sizeBytes\":\"5000000000\","
        "\"files\":\"12\",\"createdAt\":\"1700000000\",\"ownerName\":\"root\","
        "\"sharedWith\":[\"ann\",\"bob\"]},{\"name\":\"host\",\"kind\":\"host\"");
    expect("TemplateService/List", "{}", "200", "\"public\":true}]}");
    expect("TemplateService/Share", "{\"name\":\"debian\",\"owners\":[\"ann\"]}", "200",
           "\"sharedWith\":[\"ann\",\"bob\"]");
    expect("TemplateService/Share", "{\"name\":\"ann/x\",\"public\":true}", "403", "not public");
    expect("TemplateService/Share", "{\"name\":\"a/b/c\"}", "400", "not a valid name");
    expect("TemplateService/List", "{\"all\":true}", "200", "\"owner\":\"the cache of builds\"");
    expect("TemplateService/Remove", "{\"name\":\"host\"}", "403", "permission_denied");
    expect("TemplateService/Remove", "{\"name\":\"used\"}", "400", "failed_precondition");
    expect("TemplateService/Remove", "{\"name\":\"../x\"}", "400", "not a valid name");
    expect("TemplateService/Remove", "{}", "400", "field 'name' is missing");
}

static void an_import_tells_its_progress(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);

    do { /* a slow observer finds it done */
        stream("TemplateService/Import", "{\"name\":\"new\",\"path\":\"/x.tar\"}", &lines);
    } while (!strstr(lines.data, "progress") && strstr(lines.data, "template"));
    CHECK_TEXT(lines.data,
               "{\"progress\":{\"bytes\":\"1000\",\"files\":\"10\",\"sourceBytes\":\"500\","
               "\"sourceTotal\":\"800\"}}\n"
               "{\"template\":{\"name\":\"new\",\"kind\":\"imported\",\"sizeBytes\":\"2000\","
               "\"files\":\"20\",\"createdAt\":\"1\",\"ownerName\":\"root\"}}\n"
               "end: {}\n");
    stream("TemplateService/Import", "{\"name\":\"new\",\"path\":\"/bomb\"}", &lines);
    CHECK_TEXT(lines.data, "end: {\"error\":{\"code\":\"resource_exhausted\",\"message\":\"the "
                           "archive is too large\",\"retryable\":false}}\n");
    stream("TemplateService/Import", "{\"name\":\"new\",\"path\":\"x.tar\"}", &lines);
    CHECK(strstr(lines.data, "absolute"));
}

/* Any bytes in the place of JSON: always a typed error, on a connection that stays good. */
static void malformed_messages_get_typed_errors(void)
{
    static const char *const methods[] = { "ProcessService/SendInput", "ProcessService/Signal",
                                           "TemplateService/Remove", "HostService/Health" };
    static const char alphabet[] = "{}[]\":,\\u00e19-. tfn\xff\xc3\xa4sandboxId";
    unsigned seed = 1;

    for (int i = 0; i < 2000; i++) {
        cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
        char body[64];
        size_t len = (size_t)rand_r(&seed) % (sizeof(body) - 1);

        for (size_t j = 0; j < len; j++)
            body[j] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
        body[len] = '\0';
        call(methods[i % 4], body, &reply);
        CHECK(strstr(reply.data, "{\"code\":\"invalid_argument\",\"message\":\""), "(%s)",
              reply.data);
    }
}

static void the_socket_is_for_owner_and_group(void)
{
    struct stat st;

    CHECK(stat(socket_path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0660);
}

static void a_taken_port_is_named(void)
{
    cleanup_free char *address = xasprintf("127.0.0.1:%u", tcp_port);
    struct err err = { 0 };
    int fd = -EBADF;

    CHECK(listen_tcp(address, &fd, &err) < 0 && err.kind == ERR_BUSY);
    CHECK(strstr(err.msg, address), "(%s)", err.msg);
    CHECK(listen_tcp("127.0.0.1:http:x", &fd, &err) < 0 && err.kind == ERR_INVALID);
}

static int fds_count(void)
{
    DIR *list = opendir("/proc/self/fd");
    int count = 0;

    CHECK(list);
    while (readdir(list))
        count++;
    CHECK(closedir(list) == 0);
    return count;
}

/* A port that was free a moment ago. */
static uint16_t port_pick(void)
{
    struct sockaddr_in address = { 0 };
    socklen_t len = sizeof(address);
    struct err err;
    int fd = -EBADF;

    CHECK(listen_tcp("127.0.0.1:0", &fd, &err) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0 && close(fd) == 0);
    return ntohs(address.sin_port);
}

static void server_open(void)
{
    static struct frontend frontends[2];
    cleanup_free char *listen = xasprintf("127.0.0.1:%u", tcp_port);
    struct err err = { 0 };
    struct http_options options = {
        .run_dir = dir,
        .state_dir = dir,
        .listen = listen,
        .hosts = "",
        .origins = "",
        .preview = "",
        .tls_cert = "",
        .tls_key = "",
        .socket_owners = "",
        .frontends = frontends,
        .frontend_count = ARRAY_SIZE(frontends),
        .check_open = always_open,
    };

    CHECK(token_store_open(dir, &tokens, &err) == 0, "(%s)", err.msg);
    api = (struct api){ .host = (struct host *)dir, .tokens = tokens };
    frontends[0] = (struct frontend){ .ops = &pages_frontend, .context = dir };
    frontends[1] = (struct frontend){ .ops = &holt_frontend, .context = &api };
    options.tokens = tokens;
    CHECK(http_start(&options, &http, &err) == 0, "(%s)", err.msg);
}

static void server_close(void)
{
    if (!http)
        return;
    http_stop(TAKE_PTR(http));
    token_store_close(TAKE_PTR(tokens));
}

static void stopping_hangs_up_and_leaves_nothing(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(65536);
    int before = destroyed;
    int fd = run_open("wait");

    reply_wait(fd, &reply, "\"started\"");
    server_close();
    CHECK(destroyed == before + 1);
    CHECK(created == destroyed);
    CHECK(access(socket_path, F_OK) < 0);
    reply_read(fd, &reply);
    CHECK(close(fd) == 0);
}

static void a_stale_socket_is_replaced(void)
{
    struct err err = { 0 };
    int fd = -EBADF;

    server_close();
    CHECK(listen_unix(socket_path, &fd, &err) == 0 && close(fd) == 0);
    server_open();
    health_is_answered();
}

static void all(void)
{
    cleanup_free char *token_path = NULL, *tokens_path = NULL;
    int fds;

    log_set_level(LOG_ERROR);
    CHECK(mkdtemp(dir));
    (void)snprintf(socket_path, sizeof(socket_path), "%s/holt.sock", dir);
    tcp_port = port_pick();
    fds = fds_count();
    server_open();
    RUN(health_is_answered);
    RUN(healthz_is_plain);
    RUN(what_is_no_call_is_refused_by_status);
    RUN(a_body_beyond_the_limit_is_refused);
    RUN(a_chunked_body_beyond_the_limit_is_refused);
    RUN(a_run_streams_its_events_in_order);
    RUN(much_output_arrives_whole);
    RUN(a_run_that_fails_to_start_ends_with_the_error);
    RUN(a_request_that_is_no_envelope_is_refused);
    RUN(a_client_that_vanishes_takes_its_sandbox_along);
    RUN(a_client_that_stops_reading_and_vanishes_is_noticed);
    RUN(an_exec_streams_as_a_run_does_and_the_sandbox_stays);
    RUN(an_exec_that_is_refused_says_why_to_programs_too);
    RUN(an_exec_that_is_left_is_handed_back_to_its_sandbox);
    RUN(a_connection_serves_again_after_a_stream);
    RUN(an_upload_is_cut_wherever_it_is_cut);
    RUN(an_upload_that_fails_says_why_and_is_closed);
    RUN(an_upload_that_fails_is_answered_before_its_end);
    RUN(an_upload_that_is_no_upload_is_refused);
    RUN(an_upload_has_no_end_of_its_own_but_its_messages_do);
    RUN(an_upload_whose_client_vanishes_is_closed_unfinished);
    RUN(calls_are_counted_by_how_they_ended);
    RUN(input_signals_and_sizes_reach_the_process);
    RUN(input_is_bounded_to_the_byte);
    RUN(templates_are_listed_and_removed);
    RUN(an_import_tells_its_progress);
    RUN(tcp_needs_the_token);
    RUN(an_import_over_tcp_is_denied);
    RUN(malformed_messages_get_typed_errors);
    RUN(the_socket_is_for_owner_and_group);
    RUN(a_taken_port_is_named);
    RUN(stopping_hangs_up_and_leaves_nothing);
    RUN(a_stale_socket_is_replaced);
    server_close();
    CHECK(fds_count() == fds, "(%d before, %d after)", fds, fds_count());
    token_path = xasprintf("%s/token", dir);
    tokens_path = xasprintf("%s/tokens", dir);
    CHECK(unlink(token_path) == 0 && rmdir(tokens_path) == 0 && rmdir(dir) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
