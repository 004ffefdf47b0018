// SPDX-License-Identifier: Apache-2.0
/* What is known of processes, over a host of cardboard: JSON in, JSON out. */
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
#define process_service_start test_process_service_start
#define process_service_get test_process_service_get
#define process_service_list test_process_service_list
#define process_service_wait test_process_service_wait
#define process_service_send_input test_process_service_send_input
#define process_service_signal test_process_service_signal
#define process_service_resize test_process_service_resize

#define sandbox_find stub_sandbox_find
#define sandbox_unref stub_sandbox_unref
#define sandbox_get_info stub_sandbox_get_info
#define sandbox_exec stub_sandbox_exec
#define sandbox_find_record_by_key stub_sandbox_find_record_by_key
#define sandbox_find_record stub_sandbox_find_record
#define sandbox_list_records stub_sandbox_list_records
#define sandbox_attach stub_sandbox_attach
#define sandbox_detach stub_sandbox_detach
#define process_record stub_process_record
#define process_next stub_process_next
#define process_unref stub_process_unref
#define record_ref stub_record_ref
#define record_unref stub_record_unref
#define record_get stub_record_get
#define record_copy_times stub_record_copy_times
#define record_wait stub_record_wait
#define reader_open stub_reader_open
#define reader_next stub_reader_next
#define reader_close stub_reader_close

#include "../../../src/api/message/process_messages.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/message/process_start.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/process.c"                  // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/record.c"                   // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/stream/process_stream.c"    // NOLINT(bugprone-suspicious-include)
#include "unit/api/direct.h"

enum { LONG_ARG = 2000 };

struct sandbox {
    int unused;
};

/* Two of them: p1 runs, p2 is over. */
struct record {
    struct process_spec spec;
    struct record_info info;
};

static char *p1_args[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "x" }, NULL };
static char long_arg[LONG_ARG + 1];
static char *p2_args[] = { (char[]){ "\xff" }, long_arg, NULL };

static struct record records[] = {
    { { .args = p1_args, .cwd = "/w", .has_stdin = true, .tag = "web", .key = "k1" },
      { .id = "p1", .pid = 7, .started_ms = 1000, .streams = { { 900, 100, 800 }, { 5, 5, 5 } } } },
    { { .args = p2_args, .has_terminal = true },
      { .id = "p2",
        .started_ms = 1000,
        .ended_ms = 2500,
        .is_over = true,
        .end = { .outcome = OUTCOME_KILLED,
                 .killer = KILLER_ROLLBACK,
                 .exit_code = 137,
                 .signal = 9,
                 .reason = "rolled back",
                 .duration_ms = 1500,
                 .cpu_ms = 3,
                 .memory_peak_bytes = 4096 },
        .streams = { { 3, 3, 3 }, { 0, 0, 0 } } } },
};

static struct process *const new_process = (struct process *)&records[0];
static int references, attached, starts, handed_back;
static struct process_spec started_with;
static struct reader_spec opened;

int stub_sandbox_find(struct host *host, const struct caller *caller, const char *id,
                      struct sandbox **ret, struct err *err)
{
    (void)host, (void)caller;
    if (strcmp(id, "s1") != 0)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%s'", id);
    *ret = xcalloc(1, sizeof(**ret));
    references++;
    return 0;
}

void stub_sandbox_unref(struct sandbox *sandbox)
{
    references -= sandbox ? 1 : 0;
    free(sandbox);
}

void stub_sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    (void)sandbox, (void)wants_space;
    *ret = (struct sandbox_info){ .id = "sb-1" };
}

int stub_sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec,
                      struct process **ret, struct err *err)
{
    (void)sandbox;
    started_with = *spec;
    if (spec->key && strcmp(spec->key, "k1") == 0)
        return err_refuse(err, CAUSE_PROCESS_EXISTS, "the key is known");
    if (spec->key && strcmp(spec->key, "gone") == 0)
        return err_refuse(err, CAUSE_PROCESS_EXISTS, "the key is known");
    starts++;
    references++;
    *ret = new_process;
    return 0;
}

int stub_sandbox_find_record(struct sandbox *sandbox, const char *id, struct record **ret,
                             struct err *err)
{
    (void)sandbox;
    for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
        if (strcmp(records[i].info.id, id) != 0)
            continue;
        *ret = record_ref(&records[i]);
        return 0;
    }
    return err_refuse(err, CAUSE_PROCESS_NOT_FOUND, "no process '%s'", id);
}

int stub_sandbox_find_record_by_key(struct sandbox *sandbox, const char *key, struct record **ret,
                                    struct err *err)
{
    return stub_sandbox_find_record(sandbox, strcmp(key, "k1") == 0 ? "p1" : "gone", ret, err);
}

void stub_sandbox_list_records(struct sandbox *sandbox, struct record ***ret, size_t *ret_count)
{
    (void)sandbox;
    *ret = xcalloc(ARRAY_SIZE(records), sizeof(**ret));
    *ret_count = ARRAY_SIZE(records);
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        (*ret)[i] = record_ref(&records[i]);
}

void stub_sandbox_attach(struct sandbox *sandbox)
{
    (void)sandbox;
    attached++;
}

void stub_sandbox_detach(struct sandbox *sandbox, struct process *process)
{
    (void)sandbox;
    attached--;
    handed_back += process ? 1 : 0;
    references -= process ? 1 : 0;
}

void stub_process_unref(struct process *process)
{
    references -= process ? 1 : 0;
}

struct record *stub_process_record(struct process *process)
{
    CHECK(process == new_process);
    return &records[0];
}

struct record *stub_record_ref(struct record *record)
{
    references++;
    return record;
}

void stub_record_unref(struct record *record)
{
    references -= record ? 1 : 0;
}

static bool has_times;

size_t stub_record_copy_times(struct record *record, enum output_stream stream,
                              struct output_mark **ret)
{
    (void)record;
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)[0] = (struct output_mark){ 0, 86400000 };
    return has_times && stream == PROCESS_OUT ? 1 : 0;
}

void stub_record_get(struct record *record, struct record_info *ret)
{
    *ret = record->info;
    ret->spec = &record->spec;
}

int stub_record_wait(struct record *record, int watch_fd, uint64_t timeout_ms,
                     struct process_end *ret)
{
    (void)watch_fd;
    CHECK(attached == 1, "(a sandbox that somebody waits in is not idle)");
    if (!record->info.is_over)
        return timeout_ms == 5 ? -ETIMEDOUT : -ECANCELED;
    *ret = record->info.end;
    return 0;
}

struct output_reader {
    struct record *record;
    int step;
};

int stub_reader_open(struct record *record, const struct reader_spec *spec,
                     struct output_reader **ret, struct err *err)
{
    opened = *spec;
    if (spec->from[PROCESS_OUT] > record->info.streams[PROCESS_OUT].total)
        return err_set(err, ERR_INVALID, "stdout has not come so far");
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->record = record;
    references++;
    return 0;
}

void stub_reader_close(struct output_reader *reader)
{
    references -= reader ? 1 : 0;
    free(reader);
}

int stub_reader_next(struct output_reader *reader, int watch_fd, void *data, size_t size,
                     struct reader_event *ret)
{
    static const struct reader_event events[] = {
        { .kind = READER_DATA, .stream = PROCESS_OUT, .offset = 98, .len = 2 },
        { .kind = READER_GAP, .stream = PROCESS_OUT, .offset = 100, .missing = 700 },
        { .kind = READER_DATA, .stream = PROCESS_ERR, .offset = 4, .len = 1 },
        { .kind = READER_UP_TO_DATE },
    };

    (void)watch_fd;
    CHECK(size > 2 && (size_t)reader->step < ARRAY_SIZE(events));
    *ret = events[reader->step++];
    memset(data, 'x', ret->len);
    if (ret->kind == READER_UP_TO_DATE && reader->record->info.is_over) {
        ret->kind = READER_ENDED;
        ret->end = reader->record->info.end;
    }
    return 0;
}

int stub_process_next(struct process *process, int watch_fd, void *data, size_t size,
                      struct reader_event *ret)
{
    (void)process, (void)watch_fd, (void)data, (void)size;
    *ret = (struct reader_event){ .kind = READER_ENDED, .end = records[1].info.end };
    return 0;
}

#define S1 "\"sandboxId\":\"s1\""
#define P1 S1 ",\"processId\":\"p1\""
#define P2 S1 ",\"processId\":\"p2\""
#define SH "\"process\":{\"args\":[\"sh\",\"-c\",\"x\"]}"

#define NO_SERVICE ",\"port\":0,\"restart\":\"no\",\"restarts\":0"
#define INFO_1                                                                                     \
    "{\"id\":\"p1\",\"args\":[\"sh\",\"-c\",\"x\"],\"argsTruncated\":false,\"cwd\":\"/"            \
    "w\",\"tag\":"                                                                                 \
    "\"web\",\"stdin\":true,\"terminal\":false,\"state\":\"running\",\"pid\":7,"                   \
    "\"startedAt\":\"1970-01-01T00:00:01.000Z\",\"stdout\":{\"total\":\"900\",\"headEnd\":"        \
    "\"100\",\"tailStart\":\"800\"},\"stderr\":{\"total\":\"5\",\"headEnd\":\"5\",\"tailStart\":"  \
    "\"5\"}" NO_SERVICE "}"
#define ENDED_WITH(out, err, truncated)                                                            \
    "{\"outcome\":\"killed\",\"exitCode\":137,\"signal\":9,\"reason\":\"rolled back\","            \
    "\"durationMs\":\"1500\",\"cpuMs\":\"3\",\"memoryPeakBytes\":\"4096\",\"killedBy\":"           \
    "\"rollback\",\"stdoutBytes\":\"" out "\",\"stderrBytes\":\"" err                              \
    "\",\"truncated\":" truncated "}"
#define INFO_2(args, truncated)                                                                    \
    "{\"id\":\"p2\",\"args\":[" args "],\"argsTruncated\":" truncated                              \
    ",\"cwd\":\"\",\"tag\":\"\",\"stdin\":false,\"terminal\":true,\"state\":"                      \
    "\"ended\",\"pid\":0,\"startedAt\":\"1970-01-01T00:00:01.000Z\",\"endedAt\":"                  \
    "\"1970-01-01T00:00:02.500Z\",\"ended\":" ENDED_WITH(                                          \
        "3", "0", "false") ",\"stdout\":{"                                                         \
                           "\"total\":\"3\",\"headEnd\":\"3\",\"tailStart\":\"3\"},\"stderr\":{"   \
                           "\"total\":\"0\","                                                      \
                           "\"headEnd\":\"0\",\"tailStart\":\"0\"}" NO_SERVICE "}"

static void check_all_given_back(void)
{
    CHECK(references == 0 && attached == 0, "(%d references, %d attached)", references, attached);
}

static void the_times_of_output_are_told(void)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *request = request_of("{" P1 "}");
    struct err err = { 0 };

    has_times = true;
    CHECK(direct_answer("ProcessService/Get", request, &got, &err) == 0, "%s", err.msg);
    CHECK(strstr(got.data, "\"marks\":[{\"offset\":\"0\",\"time\":\"1970-01-02T00:00:00.000Z\"}]"),
          "%s", got.data);
    has_times = false;
    check_all_given_back();
}

static void a_process_is_told_of_without_its_environment(void)
{
    cleanup_with(buf_done) struct buf wanted = BUF_INIT(TEXT_MAX);

    answers("ProcessService/Get", "{" P1 "}", "{\"process\":" INFO_1 "}");
    memset(long_arg, 'y', LONG_ARG);
    CHECK(buf_printf(&wanted, "{\"process\":" INFO_2("\"?\",\"%s\"", "false") "}", long_arg) == 0);
    answers("ProcessService/Get", "{" P2 "}", wanted.data);
    check_all_given_back();
}

static void a_list_is_bounded_and_may_be_of_one_tag(void)
{
    memset(long_arg, 'y', LONG_ARG);
    answers("ProcessService/List", "{" S1 "}",
            "{\"processes\":[" INFO_1 "," INFO_2("\"?\"", "true") "]}");
    answers("ProcessService/List", "{" S1 ",\"tag\":\"web\"}", "{\"processes\":[" INFO_1 "]}");
    answers("ProcessService/List", "{" S1 ",\"tag\":\"db\"}", "{\"processes\":[]}");
    check_all_given_back();
}

static void a_start_belongs_to_nobody(void)
{
    starts = handed_back = 0;
    answers("ProcessService/Start", "{" S1 ",\"process\":{\"args\":[\"a\"],\"tag\":\"t\"}}",
            "{\"process\":" INFO_1 ",\"joined\":false}");
    CHECK(starts == 1 && handed_back == 0 && started_with.is_detached && !started_with.key);
    check_all_given_back();
}

static void a_key_joins_what_it_has_started(void)
{
    starts = 0;
    answers("ProcessService/Start", "{" S1 "," SH ",\"idempotencyKey\":\"k1\"}",
            "{\"process\":" INFO_1 ",\"joined\":true}");
    CHECK(starts == 0);
    refuses("ProcessService/Start",
            "{" S1 ",\"process\":{\"args\":[\"sh\",\"-c\"]},\"idempotencyKey\":\"k1\"}",
            ERR_INVALID, "belongs to process 'p1', which has other arguments");
    refuses("ProcessService/Start",
            "{" S1 ",\"process\":{\"args\":[\"sh\",\"-c\",\"x\",\"\"]},\"idempotencyKey\":\"k1\"}",
            ERR_INVALID, "other arguments");
    refuses("ProcessService/Start", "{" S1 "," SH ",\"idempotencyKey\":\"gone\"}", ERR_NOT_FOUND,
            "no process 'gone'");
    check_all_given_back();
}

static void a_joined_exec_gets_all_and_harms_nobody(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    starts = handed_back = 0;
    streams("ProcessService/Exec", "{" S1 "," SH ",\"idempotencyKey\":\"k1\"}", &lines);
    CHECK_TEXT(lines.data,
               "{\"started\":{\"sandboxId\":\"sb-1\",\"processId\":\"p1\",\"joined\":true}}\n"
               "{\"stdout\":\"eHg=\"}\n"
               "{\"gap\":{\"stream\":\"stdout\",\"offset\":\"100\",\"missing\":\"700\"}}\n"
               "{\"stderr\":\"eA==\"}\n");
    CHECK(opened.from[PROCESS_OUT] == 0 && opened.follows && opened.is_flow);
    CHECK(starts == 0 && handed_back == 0);
    streams("ProcessService/Exec", "{" S1 "," SH ",\"idempotencyKey\":\"new\"}", &lines);
    CHECK_TEXT(lines.data, "{\"started\":{\"sandboxId\":\"sb-1\",\"processId\":\"p1\"}}\n"
                           "{\"ended\":" ENDED_WITH("900", "5", "true") "}\n");
    CHECK(starts == 1 && handed_back == 1 && !started_with.is_detached);
    check_all_given_back();
}

static void an_attach_says_where_everything_is(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    handed_back = 0;
    streams("ProcessService/Attach", "{" P1 ",\"stdoutOffset\":\"98\",\"stderrOffset\":4}", &lines);
    CHECK_TEXT(lines.data,
               "{\"started\":{\"sandboxId\":\"sb-1\",\"processId\":\"p1\",\"stdoutOffset\":\"98\","
               "\"stderrOffset\":\"4\"}}\n"
               "{\"offset\":\"98\",\"stdout\":\"eHg=\"}\n"
               "{\"gap\":{\"stream\":\"stdout\",\"offset\":\"100\",\"missing\":\"700\"}}\n"
               "{\"offset\":\"4\",\"stderr\":\"eA==\"}\n");
    CHECK(!opened.follows && !opened.is_flow && handed_back == 0);
    streams("ProcessService/Attach", "{" P2 ",\"follow\":true,\"flow\":true}", &lines);
    CHECK(strstr(lines.data, "{\"ended\":" ENDED_WITH("3", "0", "false") "}\n"), "(%s)",
          lines.data);
    CHECK(opened.follows && opened.is_flow);
    check_all_given_back();
}

static void a_replay_begins_before_the_end_and_not_in_a_gap(void)
{
    static const struct {
        const char *bytes;
        uint64_t out, err;
    } cases[] = {
        { "0", 900, 5 },   { "3", 897, 2 },   { "100", 800, 0 },
        { "101", 800, 0 }, { "800", 800, 0 }, { "801", 99, 0 },
        { "900", 0, 0 },   { "901", 0, 0 },   { "\"18446744073709551615\"", 0, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);
        char request[128];

        (void)snprintf(request, sizeof(request), "{" P1 ",\"replayBytes\":%s}", cases[i].bytes);
        streams("ProcessService/Attach", request, &lines);
        CHECK(opened.from[PROCESS_OUT] == cases[i].out && opened.from[PROCESS_ERR] == cases[i].err,
              "(%s)", cases[i].bytes);
    }
    check_all_given_back();
}

static void a_wait_ends_with_the_process_or_with_its_time(void)
{
    answers("ProcessService/Wait", "{" P2 "}", "{\"ended\":" ENDED_WITH("3", "0", "false") "}");
    answers("ProcessService/Wait", "{" P1 ",\"timeoutMs\":5}", "{\"timedOut\":true}");
    refuses("ProcessService/Wait", "{" P1 "}", ERR_INTERNAL, "wait for process 'p1'");
    check_all_given_back();
}

static void wrong_requests_are_refused_with_the_reason(void)
{
    static const char *const about_one[] = { "ProcessService/Get", "ProcessService/Wait" };

    for (size_t i = 0; i < ARRAY_SIZE(about_one); i++) {
        refuses(about_one[i], "{" S1 "}", ERR_INVALID, "'processId' is missing");
        refuses(about_one[i], "{\"processId\":\"p1\"}", ERR_INVALID, "'sandboxId' is missing");
        refuses(about_one[i], "{" P1 ",\"x\":1}", ERR_INVALID, "unknown field 'x'");
        refuses(about_one[i], "{" S1 ",\"processId\":\"p9\"}", ERR_NOT_FOUND, "no process 'p9'");
        refuses(about_one[i], "{\"sandboxId\":\"s2\",\"processId\":\"p1\"}", ERR_NOT_FOUND,
                "no sandbox 's2'");
    }
    refuses("ProcessService/Wait", "{" P1 ",\"timeoutMs\":\"18446744073709551615\"}", ERR_INVALID,
            "at most 4611686018427");
    refuses("ProcessService/List", "{}", ERR_INVALID, "'sandboxId' is missing");
    refuses("ProcessService/List", "{" S1 ",\"tag\":\"a\\nb\"}", ERR_INVALID, "control character");
    refuses("ProcessService/Start", "{" S1 "}", ERR_INVALID, "'process' is missing");
    refuses("ProcessService/Start", "{" SH "}", ERR_INVALID, "'sandboxId' is missing");
    refuses("ProcessService/Start", "{" S1 "," SH ",\"idempotencyKey\":\"a\\u007f\"}", ERR_INVALID,
            "'idempotencyKey' has a control character");
    refuses_stream("ProcessService/Attach", "{" P1 ",\"stdoutOffset\":\"901\"}", ERR_INVALID,
                   "has not come so far");
    refuses_stream("ProcessService/Attach", "{" P1 ",\"stdoutOffset\":-1}", ERR_INVALID,
                   "stdoutOffset");
    refuses_stream("ProcessService/Attach", "{" P1 ",\"stdoutOffset\":0,\"replayBytes\":0}",
                   ERR_INVALID, "excludes offsets");
    refuses_stream("ProcessService/Attach", "{" S1 ",\"processId\":\"p9\"}", ERR_NOT_FOUND,
                   "no process 'p9'");
    refuses_stream("ProcessService/Attach", "{" P1 ",\"follow\":1}", ERR_INVALID, "follow");
    check_all_given_back();
}

/* To the byte. */
static void tags_and_keys_are_bounded(void)
{
    cleanup_with(buf_done) struct buf request = BUF_INIT(TEXT_MAX);
    char text[PROCESS_TAG_MAX + 2] = "";

    memset(text, 'a', PROCESS_TAG_MAX);
    CHECK(buf_printf(&request,
                     "{" S1 ",\"process\":{\"args\":[\"a\"],\"tag\":\"%s\"},\"idempotencyKey\":"
                     "\"%s\"}",
                     text, text) == 0);
    answers("ProcessService/Start", request.data, "{\"process\":" INFO_1 ",\"joined\":false}");
    text[PROCESS_TAG_MAX] = 'a';
    buf_clear(&request);
    CHECK(buf_printf(&request, "{" S1 ",\"process\":{\"args\":[\"a\"],\"tag\":\"%s\"}}", text) ==
          0);
    refuses("ProcessService/Start", request.data, ERR_INVALID, "'tag' is longer than 128 bytes");
    buf_clear(&request);
    CHECK(buf_printf(&request, "{" S1 "," SH ",\"idempotencyKey\":\"%s\"}", text) == 0);
    refuses("ProcessService/Start", request.data, ERR_INVALID,
            "'idempotencyKey' is longer than 128 bytes");
    check_all_given_back();
}

int main(void)
{
    RUN(a_process_is_told_of_without_its_environment);
    RUN(the_times_of_output_are_told);
    RUN(a_list_is_bounded_and_may_be_of_one_tag);
    RUN(a_start_belongs_to_nobody);
    RUN(a_key_joins_what_it_has_started);
    RUN(a_joined_exec_gets_all_and_harms_nobody);
    RUN(an_attach_says_where_everything_is);
    RUN(a_replay_begins_before_the_end_and_not_in_a_gap);
    RUN(a_wait_ends_with_the_process_or_with_its_time);
    RUN(wrong_requests_are_refused_with_the_reason);
    RUN(tags_and_keys_are_bounded);
    return 0;
}
