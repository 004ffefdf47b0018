// SPDX-License-Identifier: Apache-2.0
/* SandboxService with a fake host: which host calls a request makes, and what clients receive. */
#define sandbox_service_create test_sandbox_service_create
#define sandbox_service_get test_sandbox_service_get
#define sandbox_service_list test_sandbox_service_list
#define sandbox_service_pause test_sandbox_service_pause
#define sandbox_service_resume test_sandbox_service_resume
#define sandbox_service_stop test_sandbox_service_stop
#define sandbox_service_start test_sandbox_service_start
#define sandbox_service_destroy test_sandbox_service_destroy
#define sandbox_service_fork test_sandbox_service_fork
#define sandbox_service_run test_sandbox_service_run
#define sandbox_message test_sandbox_message
#define snapshot_message test_snapshot_message
#define template_message test_template_message
#define shares_message test_shares_message
#define capabilities_message test_capabilities_message
#define sandbox_reply test_sandbox_reply

#define host_capabilities stub_host_capabilities
#define sandbox_create_once stub_sandbox_create_once
#define sandbox_find stub_sandbox_find
#define sandbox_unref stub_sandbox_unref
#define sandbox_get_info stub_sandbox_get_info
#define sandbox_list stub_sandbox_list
#define sandbox_pause_drained stub_sandbox_pause_drained
#define sandbox_resume stub_sandbox_resume
#define sandbox_stop stub_sandbox_stop
#define sandbox_start stub_sandbox_start
#define sandbox_destroy stub_sandbox_destroy
#define sandbox_fork stub_sandbox_fork
#define sandbox_update stub_sandbox_update

#include "../../../src/api/message/messages.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/sandbox.c"          // NOLINT(bugprone-suspicious-include)
#include "base/xalloc.h"
#include "unit/api/direct.h"

struct sandbox {
    int number;
};

static int references;
static char asked[4096]; /* what the host was asked last */
static char digest[80];

/* A sandbox with everything that can be known of one. */
void stub_sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    *ret = (struct sandbox_info){
        .owner = "ann",
        .name = "s1",
        .template = "debian",
        .runtime = "native",
        .state = SANDBOX_FAILED,
        .reason = "cut off \xc3",
        .created_ms = 86400123,
        .limits = { UINT64_C(1) << 60, 1500, 256, 512 },
        .quota_bytes = 2 << 20,
        .turns = 7,
        .snapshots_max = 20,
        .snapshot_count = 5,
        .base = "turn-0007",
        .space_used = wants_space ? UINT64_C(1) << 61 : 0,
        .expires_ms = 86400000,
        .expire_action = ACTION_PAUSE,
        .idle_timeout_ms = 600000,
        .last_active_ms = 90000000,
        .machine = "secret",
        .uid_slot = 9,
        .label_count = 1,
        .labels = xcalloc(1, sizeof(struct label)),
    };
    (void)snprintf(ret->id, sizeof(ret->id), "sb-%d", sandbox->number);
    ret->labels[0] = (struct label){ "team", "red" };
}

#define SANDBOX(number, space)                                                                     \
    "{\"id\":\"sb-" number "\",\"name\":\"s1\",\"state\":\"failed\",\"reason\":\"cut off ?\","     \
    "\"template\":\"debian\",\"runtime\":\"native\",\"createdAt\":\"1970-01-02T00:00:00.123Z\","   \
    "\"labels\":{\"team\":\"red\"},\"limits\":{\"memoryBytes\":\"1152921504606846976\","           \
    "\"cpuMillis\":1500,\"pids\":256,\"files\":512},\"quotaBytes\":\"2097152\",\"turns\":7,"       \
    "\"snapshots\":5,"                                                                             \
    "\"maxSnapshots\":20,\"base\":\"turn-0007\"," space                                            \
    "\"expiresAt\":\"1970-01-02T00:00:00.000Z\",\"expireAction\":\"pause\","                       \
    "\"idleTimeoutMs\":\"600000\",\"idleAction\":\"kill\","                                        \
    "\"lastActiveAt\":\"1970-01-02T01:00:00.000Z\",\"owner\":\"ann\",\"network\":\"none\"}"

static struct sandbox *sandbox_new(int number)
{
    struct sandbox *sandbox = xcalloc(1, sizeof(*sandbox));

    sandbox->number = number;
    references++;
    return sandbox;
}

void stub_sandbox_unref(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    free(sandbox);
    references--;
}

void stub_host_capabilities(struct host *host, const char *owner, struct host_capabilities *ret)
{
    (void)host;
    (void)owner;
    *ret = (struct host_capabilities){ .snapshots = true, .sandboxes_max = 12 };
}

/* What a new sandbox is answered with. */
#define CREATED_WITH(joined)                                                                       \
    "{\"sandbox\":" SANDBOX("1", "") joined                                                        \
        ",\"capabilities\":{\"snapshots\":true,\"rollback\":false,"                                \
        "\"fork\":false,\"atomicSnapshots\":false,\"quota\":false,"                                \
        "\"pause\":false,\"deepPause\":false,"                                                     \
        "\"launch\":false,\"streamingProgress\":false,"                                            \
        "\"tierRouting\":false,\"memoryLimit\":false,"                                             \
        "\"cpuLimit\":false,\"pidsLimit\":false,\"maxSandboxes\":12,"                              \
        "\"maxSandboxDurationMs\":\"0\","                                                          \
        "\"maxSnapshots\":0,\"maxForks\":0,\"defaultQuotaBytes\":"                                 \
        "\"0\",\"maxMessageBytes\":3145728}}"
#define CREATED CREATED_WITH("")

int stub_sandbox_create_once(struct host *host, const struct sandbox_spec *spec,
                             struct sandbox **ret, bool *ret_is_joined, struct err *err)
{
    (void)host;
    *ret_is_joined = spec->key && strcmp(spec->key, "known") == 0;
    (void)snprintf(digest, sizeof(digest), "%s", spec->key ? spec->digest : "");
    if (spec->name && strcmp(spec->name, "taken") == 0)
        return err_refuse(err, CAUSE_SESSION_EXISTS, "there is a sandbox 'taken'");
    (void)snprintf(
        asked, sizeof(asked),
        "%s %s %s memory=%llu cpu=%u pids=%u files=%u quota=%llu labels=%zu max=%u ttl=%llu:%d "
        "idle=%llu:%d",
        spec->name ? spec->name : "-", spec->template ? spec->template : "-",
        spec->runtime ? spec->runtime : "-", (unsigned long long)spec->limits.memory_bytes,
        spec->limits.cpu_millis, spec->limits.pids, spec->limits.files,
        (unsigned long long)spec->quota_bytes, spec->label_count, spec->snapshots_max,
        (unsigned long long)spec->ttl_ms, spec->expire_action,
        (unsigned long long)spec->idle_timeout_ms, spec->idle_action);
    for (size_t i = 0; i < spec->label_count; i++)
        (void)snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked), " %s=%s",
                       spec->labels[i].key, spec->labels[i].value);
    *ret = sandbox_new(1);
    return 0;
}

int stub_sandbox_find(struct host *host, const struct caller *caller, const char *id,
                      struct sandbox **ret, struct err *err)
{
    (void)host, (void)caller;
    if (strcmp(id, "s1") != 0)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%s'", id);
    *ret = sandbox_new(1);
    return 0;
}

void stub_sandbox_list(struct host *host, const struct caller *caller, const struct label *labels,
                       size_t label_count, struct sandbox_info **ret, size_t *ret_count)
{
    struct sandbox first = { 1 }, second = { 2 };

    (void)host, (void)caller, (void)labels;
    *ret = xcalloc(2, sizeof(**ret));
    *ret_count = label_count > 0 ? 0 : 2;
    if (label_count > 0)
        return;
    stub_sandbox_get_info(&first, false, &(*ret)[0]);
    stub_sandbox_get_info(&second, false, &(*ret)[1]);
}

int stub_sandbox_pause_drained(struct sandbox *sandbox, int watch_fd, struct err *err)
{
    (void)sandbox, (void)watch_fd;
    return err_refuse(err, CAUSE_SESSION_PAUSED, "it is paused");
}

static int noted(const char *what)
{
    (void)snprintf(asked, sizeof(asked), "%s", what);
    return 0;
}

int stub_sandbox_resume(struct sandbox *sandbox, struct err *err)
{
    (void)sandbox, (void)err;
    return noted("resume");
}

int stub_sandbox_stop(struct sandbox *sandbox, struct err *err)
{
    (void)sandbox, (void)err;
    return noted("stop");
}

int stub_sandbox_start(struct sandbox *sandbox, struct err *err)
{
    (void)sandbox, (void)err;
    return noted("start");
}

int stub_sandbox_destroy(struct sandbox *sandbox, struct err *err)
{
    (void)sandbox, (void)err;
    return noted("destroy");
}

int stub_sandbox_fork(struct sandbox *sandbox, const struct fork_spec *spec, struct sandbox **ret,
                      struct err *err)
{
    const char *from = spec->from;

    (void)sandbox;
    if (from && strcmp(from, "gone") == 0)
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot 'gone'");
    (void)snprintf(asked, sizeof(asked), "fork %zu from %s", spec->count, from ? from : "now");
    if (spec->name)
        (void)snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked),
                       " name=%s labels=%zu ttl=%d:%d:%d", spec->name, spec->label_count,
                       spec->has_ttl, (int)spec->ttl_ms, (int)spec->expire_action);
    for (size_t i = 0; i < spec->count; i++)
        ret[i] = sandbox_new((int)i + 2);
    return 0;
}

int stub_sandbox_update(struct sandbox *sandbox, const struct sandbox_change *change,
                        struct err *err)
{
    (void)sandbox, (void)err;
    (void)snprintf(
        asked, sizeof(asked),
        "update name=%s labels=%zu-%zu memory=%d ttl=%d:%d action=%d idle=%d:%d mounts=%d",
        change->name ? change->name : "-", change->label_count, change->dropped_count,
        (int)change->limits.memory_bytes, change->has_ttl, (int)change->ttl_ms,
        change->expire_action ? (int)*change->expire_action : -1, change->has_idle_timeout,
        (int)change->idle_timeout_ms, change->has_mounts);
    return 0;
}

static void a_full_create_becomes_a_spec(void)
{
    answers("SandboxService/Create",
            "{\"name\":\"My.box_1\",\"template\":\"debian\",\"runtime\":\"bwrap\",\"limits\":"
            "{\"memoryBytes\":\"1024\",\"cpuMillis\":1500,\"pids\":9,\"files\":77},\"quotaBytes\":"
            "\"2048\","
            "\"labels\":{\"a.b/c-d_E\":\"\",\"team\":\"red \xc3\xa4\"},\"maxSnapshots\":3,"
            "\"ttlMs\":\"60000\",\"expireAction\":\"pause\",\"idleTimeoutMs\":5,"
            "\"idleAction\":\"kill\"}",
            CREATED);
    CHECK_TEXT(
        asked,
        "My.box_1 debian bwrap memory=1024 cpu=1500 pids=9 files=77 quota=2048 labels=2 max=3 "
        "ttl=60000:1 idle=5:0 a.b/c-d_E= team=red \xc3\xa4");
    CHECK(references == 0);
}

static void the_least_create_leaves_all_to_the_host(void)
{
    answers("SandboxService/Create", "{\"name\":\"\",\"labels\":{},\"limits\":null}", CREATED);
    CHECK_TEXT(asked,
               "- - - memory=0 cpu=0 pids=0 files=0 quota=0 labels=0 max=0 ttl=0:0 idle=0:0");
}

/* The same request has the same digest, regardless of the order of its fields and of its key. */
static void a_key_comes_with_a_digest_of_the_rest(void)
{
    char first[sizeof(digest)];

    answers("SandboxService/Create", "{\"name\":\"a\",\"ttlMs\":5,\"idempotencyKey\":\"new\"}",
            CREATED);
    CHECK(strlen(digest) == 64);
    memcpy(first, digest, sizeof(first));
    answers("SandboxService/Create", "{\"idempotencyKey\":\"known\",\"ttlMs\":5,\"name\":\"a\"}",
            CREATED_WITH(",\"joined\":true"));
    CHECK_TEXT(digest, first);
    answers("SandboxService/Create", "{\"name\":\"b\",\"ttlMs\":5,\"idempotencyKey\":\"new\"}",
            CREATED);
    CHECK(strcmp(digest, first) != 0);
    refuses("SandboxService/Create", "{\"idempotencyKey\":\"a\\nb\"}", ERR_INVALID, "control");
    refuses("SandboxService/Create", "{\"idempotencyKey\":7}", ERR_INVALID, "idempotencyKey");
    CHECK(references == 0);
}

static void names_of_sandboxes_are_checked_at_the_door(void)
{
    static const char *const bad[] = { ".a",   "-a", "_a",       "a b",  "a/b",
                                       "a..b", "..", "\xc3\xa4", "a\\n", "a:b" };
    char longest[140];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cleanup_free char *text = xasprintf("{\"name\":\"%s\"}", bad[i]);

        refuses("SandboxService/Create", text, ERR_INVALID, "name of a sandbox");
    }
    for (int len = 128; len <= 129; len++) {
        cleanup_free char *text = NULL;

        memset(longest, 'x', sizeof(longest));
        longest[len] = '\0';
        text = xasprintf("{\"name\":\"%s\"}", longest);
        if (len == 128)
            answers("SandboxService/Create", text, CREATED);
        else
            refuses("SandboxService/Create", text, ERR_INVALID, "name of a sandbox");
    }
}

static void labels_are_checked_at_the_door(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    char longest[300];

    refuses("SandboxService/Create", "{\"labels\":{\"\":\"x\"}}", ERR_INVALID, "key of a label");
    refuses("SandboxService/Create", "{\"labels\":{\"a b\":\"x\"}}", ERR_INVALID, "key of a label");
    refuses("SandboxService/Create", "{\"labels\":{\"a\":1}}", ERR_INVALID,
            "value of 'a' must be text");
    refuses("SandboxService/Create", "{\"labels\":{\"a\":\"x\\ny\"}}", ERR_INVALID, "value of");
    refuses("SandboxService/Create", "{\"labels\":{\"a\":\"\x7f\"}}", ERR_INVALID, "value of");
    refuses("SandboxService/Create", "{\"labels\":[\"a\"]}", ERR_INVALID, "must be an object");
    memset(longest, 'k', sizeof(longest));
    CHECK(buf_printf(&text, "{\"labels\":{\"%.64s\":\"x\"}}", longest) == 0);
    refuses("SandboxService/Create", text.data, ERR_INVALID, "key of a label");
    buf_clear(&text);
    CHECK(buf_printf(&text, "{\"labels\":{\"%.63s\":\"%.256s\"}}", longest, longest) == 0);
    refuses("SandboxService/Create", text.data, ERR_INVALID, "at most 255 bytes");
    buf_clear(&text);
    CHECK(buf_add_str(&text, "{\"labels\":{\"x\":\"\"") == 0);
    for (int i = 0; i < 64; i++)
        CHECK(buf_printf(&text, ",\"k%d\":\"\"", i) == 0);
    CHECK(buf_add_str(&text, "}}") == 0);
    refuses("SandboxService/Create", text.data, ERR_EXHAUSTED, "'labels' has more than 64 items");
}

static void wrong_creates_are_refused_with_the_reason(void)
{
    refuses("SandboxService/Create", "{\"name\":\"taken\"}", ERR_EXISTS, "there is a sandbox");
    refuses("SandboxService/Create", "{\"nam\":\"x\"}", ERR_INVALID, "unknown field 'nam'");
    refuses("SandboxService/Create", "{\"template\":\"../x\"}", ERR_INVALID, "not a valid name");
    refuses("SandboxService/Create", "{\"limits\":{\"disk\":1}}", ERR_INVALID, "unknown field");
    refuses("SandboxService/Create", "{\"quotaBytes\":-1}", ERR_INVALID, "quotaBytes");
    refuses("SandboxService/Create", "{\"ttlMs\":\"18446744073709551615\"}", ERR_INVALID,
            "'ttlMs' must be at most");
    refuses("SandboxService/Create", "{\"idleTimeoutMs\":\"18446744073709551615\"}", ERR_INVALID,
            "'idleTimeoutMs' must be at most");
    refuses("SandboxService/Create", "{\"expireAction\":\"explode\"}", ERR_INVALID,
            "kill, pause, stop or deep-pause");
    refuses("SandboxService/Create", "{\"idleAction\":\"KILL\"}", ERR_INVALID,
            "kill, pause, stop or deep-pause");
    refuses("SandboxService/Create", "{\"maxSnapshots\":4294967296}", ERR_INVALID, "too large");
    CHECK(references == 0);
}

static void only_get_tells_the_use_of_storage(void)
{
    answers("SandboxService/Get", "{\"sandboxId\":\"s1\"}",
            "{\"sandbox\":" SANDBOX("1", "\"spaceUsed\":\"2305843009213693952\",") "}");
    answers("SandboxService/List", "{}",
            "{\"sandboxes\":[" SANDBOX("1", "") "," SANDBOX("2", "") "]}");
    CHECK(references == 0);
}

static void a_list_may_be_of_those_with_labels(void)
{
    answers("SandboxService/List", "{\"labels\":{\"team\":\"blue\"}}", "{\"sandboxes\":[]}");
    refuses("SandboxService/List", "{\"labels\":{\"a b\":\"\"}}", ERR_INVALID, "key of a label");
    refuses("SandboxService/List", "{\"name\":\"x\"}", ERR_INVALID, "unknown field");
}

static void states_change_one_by_one(void)
{
    static const struct {
        const char *method;
        const char *asked;
    } verbs[] = {
        { "SandboxService/Resume", "resume" },
        { "SandboxService/Stop", "stop" },
        { "SandboxService/Start", "start" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        answers(verbs[i].method, "{\"sandboxId\":\"s1\"}", "{\"sandbox\":" SANDBOX("1", "") "}");
        CHECK_TEXT(asked, verbs[i].asked);
        refuses(verbs[i].method, "{}", ERR_INVALID, "'sandboxId' is missing");
        refuses(verbs[i].method, "{\"sandboxId\":\"s1\",\"x\":1}", ERR_INVALID, "unknown field");
    }
    answers("SandboxService/Destroy", "{\"sandboxId\":\"s1\"}", "{}");
    CHECK_TEXT(asked, "destroy");
    CHECK(references == 0);
}

static void a_refusal_of_the_host_keeps_its_cause(void)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *request = request_of("{\"sandboxId\":\"s1\"}");
    struct err err = { 0 };

    CHECK(direct_answer("SandboxService/Pause", request, &got, &err) < 0);
    CHECK(err.cause == CAUSE_SESSION_PAUSED && err.kind == ERR_BUSY);
    refuses("SandboxService/Get", "{\"sandboxId\":\"s2\"}", ERR_NOT_FOUND, "no sandbox 's2'");
    refuses("SandboxService/Destroy", "{\"sandboxId\":\"s2\"}", ERR_NOT_FOUND, "no sandbox 's2'");
    refuses("SandboxService/Get", "{\"sandboxId\":\"../s1\"}", ERR_INVALID, "cannot be the id");
    refuses("SandboxService/Get", "{\"sandboxId\":7}", ERR_INVALID, "must be text");
    CHECK(references == 0);
}

static void an_update_has_what_is_given(void)
{
    answers("SandboxService/Update", "{\"sandboxId\":\"s1\"}",
            "{\"sandbox\":" SANDBOX("1", "") "}");
    CHECK_TEXT(asked, "update name=- labels=0-0 memory=0 ttl=0:0 action=-1 idle=0:0 mounts=0");
    answers("SandboxService/Update",
            "{\"sandboxId\":\"s1\",\"name\":\"\",\"labels\":{\"a\":\"b\"},\"removeLabels\":[\"c\","
            "\"d\"],\"limits\":{\"memoryBytes\":\"9\"},\"ttlMs\":0,\"expireAction\":\"pause\","
            "\"idleTimeoutMs\":5,\"volumes\":{}}",
            "{\"sandbox\":" SANDBOX("1", "") "}");
    CHECK_TEXT(asked, "update name= labels=1-2 memory=9 ttl=1:0 action=1 idle=1:5 mounts=1");
    refuses("SandboxService/Update", "{\"sandboxId\":\"s1\",\"template\":\"x\"}", ERR_INVALID,
            "template");
    refuses("SandboxService/Update", "{\"sandboxId\":\"s1\",\"idleAction\":\"x\"}", ERR_INVALID,
            "idleAction");
    CHECK(references == 0);
}

static void forks_are_from_1_to_256(void)
{
    answers("SandboxService/Fork", "{\"sandboxId\":\"s1\"}",
            "{\"sandboxes\":[" SANDBOX("2", "") "]}");
    CHECK_TEXT(asked, "fork 1 from now");
    answers("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"count\":2,\"from\":\"turn-0001\"}",
            "{\"sandboxes\":[" SANDBOX("2", "") "," SANDBOX("3", "") "]}");
    CHECK_TEXT(asked, "fork 2 from turn-0001");
    answers("SandboxService/Fork",
            "{\"sandboxId\":\"s1\",\"name\":\"n\",\"labels\":{\"a\":\"b\"},\"ttlMs\":\"7\","
            "\"expireAction\":\"stop\"}",
            "{\"sandboxes\":[" SANDBOX("2", "") "]}");
    CHECK_TEXT(asked, "fork 1 from now name=n labels=1 ttl=1:7:2");
    refuses("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"count\":0}", ERR_INVALID, "1 to 256");
    refuses("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"count\":257}", ERR_INVALID, "1 to 256");
    refuses("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"from\":\"gone\"}", ERR_NOT_FOUND,
            "gone");
    refuses("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"from\":\"a/b\"}", ERR_INVALID,
            "not a valid name");
    refuses("SandboxService/Fork", "{\"sandboxId\":\"s1\",\"from\":\"template\"}", ERR_INVALID,
            "the template itself");
    CHECK(references == 0);
}

int main(void)
{
    RUN(a_full_create_becomes_a_spec);
    RUN(the_least_create_leaves_all_to_the_host);
    RUN(a_key_comes_with_a_digest_of_the_rest);
    RUN(names_of_sandboxes_are_checked_at_the_door);
    RUN(labels_are_checked_at_the_door);
    RUN(wrong_creates_are_refused_with_the_reason);
    RUN(only_get_tells_the_use_of_storage);
    RUN(a_list_may_be_of_those_with_labels);
    RUN(states_change_one_by_one);
    RUN(a_refusal_of_the_host_keeps_its_cause);
    RUN(an_update_has_what_is_given);
    RUN(forks_are_from_1_to_256);
    return 0;
}
