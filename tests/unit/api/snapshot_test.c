// SPDX-License-Identifier: Apache-2.0
/* SnapshotService, TemplateService/Commit and HostService/Audit with a host of cardboard. */
#define snapshot_service_turn_complete test_snapshot_service_turn_complete
#define snapshot_service_create test_snapshot_service_create
#define snapshot_service_rollback test_snapshot_service_rollback
#define snapshot_service_list test_snapshot_service_list
#define snapshot_service_remove test_snapshot_service_remove
#define snapshot_service_diff test_snapshot_service_diff
#define host_service_health test_host_service_health
#define host_service_audit test_host_service_audit
#define template_service_import test_template_service_import
#define template_service_list test_template_service_list
#define template_service_remove test_template_service_remove
#define template_service_commit test_template_service_commit
#define sandbox_message test_sandbox_message
#define snapshot_message test_snapshot_message
#define template_message test_template_message
#define capabilities_message test_capabilities_message
#define sandbox_reply test_sandbox_reply

#define sandbox_find stub_sandbox_find
#define call_set_word stub_call_set_word
#define sandbox_unref stub_sandbox_unref
#define sandbox_get_info stub_sandbox_get_info
#define sandbox_turn stub_sandbox_turn
#define sandbox_snapshot stub_sandbox_snapshot
#define sandbox_rollback stub_sandbox_rollback
#define sandbox_remove_snapshot stub_sandbox_remove_snapshot
#define sandbox_list_snapshots stub_sandbox_list_snapshots
#define sandbox_diff stub_sandbox_diff
#define sandbox_commit stub_sandbox_commit
#define owned_template_reserve stub_owned_template_reserve
#define owned_template_release stub_owned_template_release
#define template_service_share test_template_service_share
#define shares_message test_shares_message
#define host_read_audit stub_host_read_audit

#include <stdatomic.h>

#include "../../../src/api/diff.c"             // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/host.c"             // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/message/messages.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/snapshot.c"         // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/template.c"         // NOLINT(bugprone-suspicious-include)
#include "unit/api/direct.h"

struct sandbox {
    int unused;
};

static atomic_int references;
static char asked[512];
static int many; /* entries that a diff has */

void stub_call_set_word(const struct sandbox *sandbox, const char *word, struct err *err)
{
    (void)sandbox, (void)word, (void)err;
}

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
    if (!sandbox)
        return;
    free(sandbox);
    references--;
}

void stub_sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    (void)sandbox, (void)wants_space;
    *ret = (struct sandbox_info){ .id = "sb-1", .base = "turn-0002" };
}

int stub_sandbox_turn(struct sandbox *sandbox, struct snapshot_info *ret, struct err *err)
{
    (void)sandbox, (void)err;
    *ret = (struct snapshot_info){ "turn-0002", SNAPSHOT_TURN, 2, "turn-0001", 1000, 4096, "" };
    return 0;
}

int stub_sandbox_snapshot(struct sandbox *sandbox, const char *name, enum snapshot_kind kind,
                          struct snapshot_info *ret, struct err *err)
{
    (void)sandbox;
    if (strcmp(name, "taken") == 0)
        return err_refuse(err, CAUSE_SNAPSHOT_EXISTS, "there is a snapshot 'taken'");
    *ret = (struct snapshot_info){ .kind = kind, .created_ms = 1001 };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return 0;
}

int stub_sandbox_rollback(struct sandbox *sandbox, const char *snapshot, bool prune_newer,
                          struct err *err)
{
    (void)sandbox, (void)err;
    (void)snprintf(asked, sizeof(asked), "rollback %s %d", snapshot, prune_newer);
    return 0;
}

int stub_sandbox_remove_snapshot(struct sandbox *sandbox, const char *snapshot, struct err *err)
{
    (void)sandbox;
    return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot '%s'", snapshot);
}

int stub_sandbox_list_snapshots(struct sandbox *sandbox, struct snapshot_info **ret,
                                size_t *ret_count, struct err *err)
{
    *ret = xcalloc(2, sizeof(**ret));
    (void)stub_sandbox_turn(sandbox, &(*ret)[0], err);
    (void)stub_sandbox_snapshot(sandbox, "x", SNAPSHOT_TOOL, &(*ret)[1], err);
    *ret_count = 2;
    return 0;
}

/* From "many": entries until the stream is stopped. From "huge": a patch of 1.5 MiB. */
int stub_sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                      void *context, struct err *err)
{
    static char patch[3 * PATCH_PIECE + 1];
    struct diff_entry entry = {
        .kind = DIFF_MODIFIED,
        .path = "/a",
        .type = 'f',
        .size = 7,
        .old_size = 5,
        .added_lines = 2,
        .deleted_lines = 1,
    };
    const char *from = what->from ? what->from : "base";
    int r = 0;

    (void)sandbox;
    (void)snprintf(asked, sizeof(asked), "diff %s %s %d %d", *from ? from : "template",
                   what->to ? what->to : "now", what->options.wants_lines,
                   what->options.wants_patch);
    if (strcmp(from, "gone") == 0)
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot 'gone'");
    if (strcmp(from, "many") == 0) {
        for (; r == 0; many++)
            r = each(&entry, context);
        return r;
    }
    if (strcmp(from, "huge") == 0) {
        memset(patch, 'p', sizeof(patch));
        entry.patch = patch;
        entry.patch_len = sizeof(patch);
        return each(&entry, context);
    }
    r = each(&entry, context);
    entry = (struct diff_entry){
        .kind = DIFF_RENAMED,
        .path = "/n\xff",
        .old_path = "/o",
        .type = 'l',
        .size = 1,
        .old_size = 1,
        .is_binary = true,
        .patch = "@@\n",
        .patch_len = 3,
    };
    return r < 0 ? r : each(&entry, context);
}

int stub_sandbox_commit(struct sandbox *sandbox, const char *template, struct template_info *ret,
                        struct err *err)
{
    (void)sandbox, (void)err;
    *ret =
        (struct template_info){ .size_bytes = 5000000000, .files = 12, .created_at = 1700000000 };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", template);
    return 0;
}

int stub_owned_template_reserve(struct host *host, const struct caller *caller, const char *name,
                                struct template_record *ret, struct err *err)
{
    (void)host, (void)err;
    *ret = (struct template_record){ .store_name = "" };
    (void)snprintf(ret->store_name, sizeof(ret->store_name), "%s", name);
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", caller->owner);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return 0;
}

void stub_owned_template_release(struct host *host, const char *store_name)
{
    (void)host, (void)store_name;
}

int stub_host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                         uint64_t *ret_lines, struct err *err)
{
    int r = each("{\"seq\":1}", context);

    (void)host;
    (void)snprintf(asked, sizeof(asked), "audit %s", sandbox ? sandbox : "all");
    if (r < 0)
        return r;
    if (sandbox && strcmp(sandbox, "broken") == 0)
        return err_set(err, ERR_INTERNAL, "line 2 does not follow from line 1");
    if (sandbox && strcmp(sandbox, "absent") == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no record");
    *ret_lines = 1;
    return 0;
}

#define TURN                                                                                       \
    "{\"name\":\"turn-0002\",\"kind\":\"turn\",\"turn\":2,\"parent\":\"turn-0001\",\"createdAt\":" \
    "\"1970-01-01T00:00:01.000Z\",\"spaceUsed\":\"4096\"}"
#define OTHER(name, kind)                                                                          \
    "{\"name\":\"" name "\",\"kind\":\"" kind "\",\"turn\":0,\"parent\":\"\",\"createdAt\":"       \
    "\"1970-01-01T00:00:01.001Z\",\"spaceUsed\":\"0\"}"
#define S1 "\"sandboxId\":\"s1\""

static void a_turn_is_answered_with_its_snapshot(void)
{
    answers("SnapshotService/TurnComplete", "{" S1 "}", "{\"snapshot\":" TURN "}");
    refuses("SnapshotService/TurnComplete", "{\"sandboxId\":\"s2\"}", ERR_NOT_FOUND, "s2");
    refuses("SnapshotService/TurnComplete", "{" S1 ",\"name\":\"x\"}", ERR_INVALID, "unknown");
    CHECK(references == 0);
}

static void snapshots_have_names_and_kinds(void)
{
    answers("SnapshotService/Create", "{" S1 ",\"name\":\"Before_1.x-y\"}",
            "{\"snapshot\":" OTHER("Before_1.x-y", "named") "}");
    answers("SnapshotService/Create", "{" S1 ",\"name\":\"t\",\"kind\":\"tool\"}",
            "{\"snapshot\":" OTHER("t", "tool") "}");
    refuses("SnapshotService/Create", "{" S1 ",\"name\":\"t\",\"kind\":\"turn\"}", ERR_INVALID,
            "must be named or tool");
    refuses("SnapshotService/Create", "{" S1 ",\"name\":\"taken\"}", ERR_EXISTS, "taken");
    refuses("SnapshotService/Create", "{" S1 "}", ERR_INVALID, "'name' is missing");
    refuses("SnapshotService/Create", "{" S1 ",\"name\":\"template\"}", ERR_INVALID,
            "the template itself");
    refuses("SnapshotService/Create", "{" S1 ",\"name\":\"../x\"}", ERR_INVALID,
            "not a valid name");
    refuses("SnapshotService/Create", "{" S1 ",\"name\":\".x\"}", ERR_INVALID, "not a valid name");
    CHECK(references == 0);
}

static void a_rollback_names_its_snapshot(void)
{
    cleanup_json json_t *request = request_of("{" S1 ",\"snapshot\":\"turn-0001\"}");
    cleanup_with(buf_done) struct buf got = BUF_INIT(TEXT_MAX);
    struct err err = { 0 };

    CHECK(direct_answer("SnapshotService/Rollback", request, &got, &err) == 0);
    CHECK_TEXT(asked, "rollback turn-0001 0");
    CHECK(strncmp(got.data, "{\"sandbox\":{", 12) == 0, "(%s)", got.data);
    json_object_set_new(request, "pruneNewer", json_true());
    buf_clear(&got);
    CHECK(direct_answer("SnapshotService/Rollback", request, &got, &err) == 0);
    CHECK_TEXT(asked, "rollback turn-0001 1");
    refuses("SnapshotService/Rollback", "{" S1 "}", ERR_INVALID, "'snapshot' is missing");
    refuses("SnapshotService/Rollback", "{" S1 ",\"snapshot\":\"x\",\"pruneNewer\":1}", ERR_INVALID,
            "true or false");
    CHECK(references == 0);
}

static void snapshots_are_listed_with_the_one_that_files_go_back_to(void)
{
    answers("SnapshotService/List", "{" S1 "}",
            "{\"snapshots\":[" TURN "," OTHER("x", "tool") "],\"base\":\"turn-0002\"}");
    refuses("SnapshotService/Remove", "{" S1 ",\"snapshot\":\"x\"}", ERR_NOT_FOUND, "'x'");
    refuses("SnapshotService/Remove", "{" S1 "}", ERR_INVALID, "'snapshot' is missing");
    CHECK(references == 0);
}

static void a_diff_is_one_message_an_entry(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    streams("SnapshotService/Diff", "{" S1 ",\"lines\":true}", &lines);
    CHECK_TEXT(asked, "diff base now 1 0");
    CHECK_TEXT(
        lines.data,
        "{\"kind\":\"modified\",\"path\":\"/a\",\"type\":\"file\",\"size\":\"7\",\"oldSize\":"
        "\"5\",\"binary\":false,\"addedLines\":\"2\",\"deletedLines\":\"1\"}\n"
        "{\"kind\":\"renamed\",\"path\":\"/n?\",\"rawPath\":\"L27/\",\"oldPath\":\"/o\","
        "\"type\":\"link\",\"size\":\"1\",\"oldSize\":\"1\",\"binary\":true,\"addedLines\":"
        "\"0\",\"deletedLines\":\"0\",\"patch\":\"QEAK\"}\n");
    streams("SnapshotService/Diff",
            "{" S1 ",\"from\":\"template\",\"to\":\"turn-0001\",\"patch\":true}", &lines);
    CHECK_TEXT(asked, "diff template turn-0001 0 1");
    CHECK(references == 0);
}

static void what_is_wrong_with_a_diff_is_told(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    streams("SnapshotService/Diff", "{" S1 ",\"from\":\"gone\"}", &lines);
    CHECK_TEXT(lines.data, "error: no snapshot 'gone'\n");
    refuses_stream("SnapshotService/Diff", "{\"sandboxId\":\"s2\"}", ERR_NOT_FOUND, "s2");
    refuses_stream("SnapshotService/Diff", "{" S1 ",\"from\":\"a/b\"}", ERR_INVALID,
                   "not a valid name");
    refuses_stream("SnapshotService/Diff", "{" S1 ",\"stat\":true}", ERR_INVALID, "unknown field");
    CHECK(references == 0);
}

static void a_long_patch_comes_in_pieces(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX), patch = BUF_INIT(TEXT_MAX);
    int count = 0;

    streams("SnapshotService/Diff", "{" S1 ",\"from\":\"huge\",\"patch\":true}", &lines);
    for (char *line = lines.data, *end; *line; line = end + 1, count++) {
        cleanup_json json_t *message = NULL;
        struct err err = { 0 };

        end = strchr(line, '\n');
        CHECK(json_parse_object(line, (size_t)(end - line), &message, &err) == 0);
        CHECK((count == 0) == (json_object_get(message, "path") != NULL));
        CHECK(json_get_bytes(message, "patch", &patch, &err) == 0, "(%s)", err.msg);
    }
    CHECK(count == 4 && patch.len == 3 * PATCH_PIECE + 1, "(%d, %zu)", count, patch.len);
    CHECK(strspn(patch.data, "p") == patch.len);
}

static void a_reader_that_leaves_stops_a_diff(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 * ENVELOPE_PAYLOAD_MAX);
    cleanup_json json_t *request = request_of("{" S1 ",\"from\":\"many\"}");
    struct stream *stream = NULL;
    struct err err = { 0 };

    CHECK(direct_stream("SnapshotService/Diff", request, &stream, &err) == 0);
    for (int i = 0; i < 5; i++) {
        (void)usleep(20 * 1000); /* for as much to wait as may */
        buf_clear(&out);
        CHECK(stream->ops->next(stream, &out, &err) == 1);
        CHECK(out.len > 0 && out.len < 256 * 1024, "(%zu bytes were waiting)", out.len);
    }
    stream->ops->close(stream);
    CHECK(many >= 5 && references == 0);
}

static void a_commit_is_answered_with_the_template(void)
{
    answers("TemplateService/Commit", "{" S1 ",\"name\":\"new\"}",
            "{\"template\":{\"name\":\"new\",\"kind\":\"imported\",\"sizeBytes\":\"5000000000\","
            "\"files\":\"12\",\"createdAt\":\"1700000000\",\"ownerName\":\"root\"}}");
    refuses("TemplateService/Commit", "{" S1 "}", ERR_INVALID, "'name' is missing");
    refuses("TemplateService/Commit", "{" S1 ",\"name\":\"A\"}", ERR_INVALID, "not a valid");
    refuses("TemplateService/Commit", "{\"name\":\"new\"}", ERR_INVALID, "'sandboxId' is missing");
    CHECK(references == 0);
}

static void the_record_ends_with_a_verdict(void)
{
    static const char verdict[] =
        "{\"verdict\":{\"inOrder\":true,\"lines\":\"1\",\"problem\":\"\"}}\n";
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    streams("HostService/Audit", "{}", &lines);
    CHECK_TEXT(asked, "audit all");
    CHECK(strstr(lines.data, "{\"line\":\"{\\\"seq\\\":1}\"}\n") == lines.data);
    CHECK_TEXT(strchr(lines.data, '\n') + 1, verdict);
    streams("HostService/Audit", "{\"verify\":true,\"sandboxId\":\"s1\"}", &lines);
    CHECK_TEXT(asked, "audit sb-1");
    CHECK_TEXT(lines.data, verdict);
    CHECK(references == 0);
}

static void a_record_that_is_not_whole_is_an_answer_too(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(TEXT_MAX);

    streams("HostService/Audit", "{\"sandboxId\":\"broken\",\"verify\":true}", &lines);
    CHECK_TEXT(lines.data, "{\"verdict\":{\"inOrder\":false,\"lines\":\"0\",\"problem\":\"line 2 "
                           "does not follow from line 1\"}}\n");
    streams("HostService/Audit", "{\"sandboxId\":\"absent\",\"verify\":true}", &lines);
    CHECK_TEXT(lines.data, "error: there is no record\n");
    refuses_stream("HostService/Audit", "{\"sandboxId\":\"../x\"}", ERR_INVALID,
                   "cannot be the id");
    refuses_stream("HostService/Audit", "{\"follow\":true}", ERR_INVALID, "unknown field");
}

int main(void)
{
    RUN(a_turn_is_answered_with_its_snapshot);
    RUN(snapshots_have_names_and_kinds);
    RUN(a_rollback_names_its_snapshot);
    RUN(snapshots_are_listed_with_the_one_that_files_go_back_to);
    RUN(a_diff_is_one_message_an_entry);
    RUN(what_is_wrong_with_a_diff_is_told);
    RUN(a_long_patch_comes_in_pieces);
    RUN(a_reader_that_leaves_stops_a_diff);
    RUN(a_commit_is_answered_with_the_template);
    RUN(the_record_ends_with_a_verdict);
    RUN(a_record_that_is_not_whole_is_an_answer_too);
    return 0;
}
