// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void codebase_fill(void *result, struct holt_codebase *codebase,
                          const struct msg_codebase *message)
{
    (void)result;
    codebase->id = message->id;
    codebase->name = message->name;
    codebase->owner = message->owner;
    codebase->source = message->source;
    codebase->version = message->version;
}

static int added_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_add_response *reply = message;

    if (!reply->codebase)
        return reply_lacks("codebase", error);
    codebase_fill(result, result, reply->codebase);
    return 0;
}

int holt_codebase_add(struct holt *holt, const char *name, const char *source, int64_t deadline,
                      struct holt_codebase **ret, struct holt_error *error)
{
    const struct msg_codebase_add_request request = { .name = name, .source = source };
    const struct client_call call = { &method_codebase_service_add, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), added_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_list_response *reply = message;
    struct holt_codebase_list *list = result;

    (void)error;
    list->count = reply->codebases_count;
    list->items = RESULT_LIST(result, struct holt_codebase, codebase_fill, reply->codebases,
                              reply->codebases_count);
    return 0;
}

int holt_codebase_list(struct holt *holt, int64_t deadline, struct holt_codebase_list **ret,
                       struct holt_error *error)
{
    const struct msg_codebase_list_request request = { 0 };
    const struct client_call call = { &method_codebase_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_codebase_remove(struct holt *holt, const char *codebase, int64_t deadline,
                         struct holt_error *error)
{
    const struct msg_codebase_remove_request request = { .codebase = codebase };
    const struct client_call call = { &method_codebase_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static void version_fill(void *result, struct holt_codebase_version *version,
                         const struct msg_codebase_version *message)
{
    (void)result;
    version->version = message->version;
    version->created_ms = (int64_t)message->created_at_ms;
    version->sandbox = message->sandbox_id;
    version->message = message->message;
    version->files = message->files;
}

static int log_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_log_response *reply = message;
    struct holt_codebase_log *log = result;

    (void)error;
    log->count = reply->versions_count;
    log->items = RESULT_LIST(result, struct holt_codebase_version, version_fill, reply->versions,
                             reply->versions_count);
    return 0;
}

int holt_codebase_log(struct holt *holt, const char *codebase, int64_t deadline,
                      struct holt_codebase_log **ret, struct holt_error *error)
{
    const struct msg_codebase_log_request request = { .codebase = codebase };
    const struct client_call call = { &method_codebase_service_log, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), log_fill, ret, error);
}

static int committed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_commit_response *reply = message;

    if (!reply->version)
        return reply_lacks("version", error);
    version_fill(result, result, reply->version);
    return 0;
}

int holt_codebase_commit(struct holt *holt, const char *sandbox, const char *message,
                         int64_t deadline, struct holt_codebase_version **ret,
                         struct holt_error *error)
{
    const struct msg_codebase_commit_request request = { .sandbox_id = sandbox,
                                                         .message = message };
    const struct client_call call = { &method_codebase_service_commit, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), committed_fill, ret, error);
}

static void hunk_fill(void *result, struct holt_codebase_hunk *hunk,
                      const struct msg_codebase_hunk *message)
{
    (void)result;
    hunk->line = message->line;
    hunk->ours = message->ours;
    hunk->theirs = message->theirs;
}

static void conflict_fill(void *result, struct holt_codebase_conflict *conflict,
                          const struct msg_codebase_conflict *message)
{
    conflict->path = message->path;
    conflict->reason = message->reason;
    conflict->count = message->hunks_count;
    conflict->hunks = RESULT_LIST(result, struct holt_codebase_hunk, hunk_fill, message->hunks,
                                  message->hunks_count);
}

static int applying_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_apply_response *reply = message;
    struct holt_codebase_applying *applying = result;

    (void)error;
    applying->version = reply->version;
    applying->files = reply->files;
    applying->conflict_count = reply->conflict_count;
    applying->count = reply->conflicts_count;
    applying->conflicts = RESULT_LIST(result, struct holt_codebase_conflict, conflict_fill,
                                      reply->conflicts, reply->conflicts_count);
    return 0;
}

int holt_codebase_apply(struct holt *holt, const char *codebase,
                        const struct holt_codebase_target *target, int64_t deadline,
                        struct holt_codebase_applying **ret, struct holt_error *error)
{
    const uint32_t *version = target->version;
    const struct msg_codebase_apply_request request = { .codebase = codebase,
                                                        .directory = target->directory,
                                                        .has_version = version != NULL,
                                                        .version = version ? *version : 0 };
    const struct client_call call = { &method_codebase_service_apply, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), applying_fill, ret, error);
}

static int branching_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_branch_response *reply = message;
    struct holt_codebase_branching *branching = result;

    (void)error;
    branching->version = reply->version;
    branching->commits = reply->commits;
    branching->commit = reply->commit;
    return 0;
}

int holt_codebase_branch(struct holt *holt, const char *codebase,
                         const struct holt_codebase_branch_options *options, int64_t deadline,
                         struct holt_codebase_branching **ret, struct holt_error *error)
{
    const uint32_t *version = options->version;
    const struct msg_codebase_branch_request request = { .codebase = codebase,
                                                         .branch = options->branch,
                                                         .directory = options->directory,
                                                         .has_version = version != NULL,
                                                         .version = version ? *version : 0 };
    const struct client_call call = { &method_codebase_service_branch, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), branching_fill, ret, error);
}

static int merging_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_codebase_merge_response *reply = message;
    struct holt_codebase_merging *merging = result;

    (void)error;
    merging->base = reply->base;
    merging->files = reply->files;
    merging->conflict_count = reply->conflict_count;
    merging->count = reply->conflicts_count;
    merging->conflicts = RESULT_LIST(result, struct holt_codebase_conflict, conflict_fill,
                                     reply->conflicts, reply->conflicts_count);
    return 0;
}

int holt_codebase_rebase(struct holt *holt, const char *sandbox, enum holt_codebase_side side,
                         int64_t deadline, struct holt_codebase_merging **ret,
                         struct holt_error *error)
{
    const struct msg_codebase_rebase_request request = { .sandbox_id = sandbox,
                                                         .side = (enum msg_codebase_side)side };
    const struct client_call call = { &method_codebase_service_rebase, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), merging_fill, ret, error);
}

int holt_codebase_merge(struct holt *holt, const char *sandbox,
                        const struct holt_codebase_source *source, int64_t deadline,
                        struct holt_codebase_merging **ret, struct holt_error *error)
{
    const enum msg_codebase_side side = (enum msg_codebase_side)source->side;
    const struct msg_codebase_merge_request request = { .sandbox_id = sandbox,
                                                        .from_sandbox_id = source->sandbox,
                                                        .side = side };
    const struct client_call call = { &method_codebase_service_merge, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), merging_fill, ret, error);
}

int holt_codebase_discard(struct holt *holt, const char *sandbox, const char *path,
                          int64_t deadline, struct holt_error *error)
{
    const struct msg_codebase_discard_request request = { .sandbox_id = sandbox, .path = path };
    const struct client_call call = { &method_codebase_service_discard, &request, false, deadline };

    return client_call_void(holt, &call, error);
}
