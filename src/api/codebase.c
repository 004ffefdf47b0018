// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/codebase.h"

#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/codebase/apply.h"
#include "host/codebase/branch.h"
#include "host/codebase/merge.h"
#include "host/sandbox/sandbox.h"

static struct msg_codebase codebase_message(const struct codebase_info *info)
{
    return (struct msg_codebase){ .id = info->id,
                                  .name = info->name,
                                  .owner = info->owner,
                                  .source = info->source,
                                  .version = info->head };
}

static struct msg_codebase_version version_message(const struct codebase_version *version)
{
    return (struct msg_codebase_version){ .version = version->version,
                                          .created_at_ms = version->created_ms,
                                          .sandbox_id = version->sandbox,
                                          .message = version->message,
                                          .files = version->files };
}

int codebase_service_add(const struct call *call, const struct msg_codebase_add_request *request,
                         struct err *err)
{
    struct codebase_info info;
    struct msg_codebase message;
    int r = codebase_add(call->host, call->caller, request->name, request->source, &info, err);

    if (r < 0)
        return r;
    message = codebase_message(&info);
    return call_reply(call, MESSAGE(msg_codebase_add_response, .codebase = &message), err);
}

int codebase_service_list(const struct call *call, const struct msg_codebase_list_request *request,
                          struct err *err)
{
    cleanup_free struct codebase_info *infos = NULL;
    struct msg_codebase *messages;
    size_t count = 0;
    int r = codebase_list(call->host, call->caller, &infos, &count, err);

    (void)request;
    if (r < 0)
        return r;
    messages = arena_take(call->arena, count, sizeof(*messages));
    for (size_t i = 0; i < count; i++)
        messages[i] = codebase_message(&infos[i]);
    return call_reply(
        call, MESSAGE(msg_codebase_list_response, .codebases = messages, .codebases_count = count),
        err);
}

int codebase_service_remove(const struct call *call,
                            const struct msg_codebase_remove_request *request, struct err *err)
{
    return codebase_remove(call->host, call->caller, request->codebase, err);
}

int codebase_service_log(const struct call *call, const struct msg_codebase_log_request *request,
                         struct err *err)
{
    cleanup_free struct codebase_version *versions = NULL;
    struct msg_codebase_version *messages;
    size_t count = 0;
    int r = codebase_log(call->host, call->caller, request->codebase, &versions, &count, err);

    if (r < 0)
        return r;
    messages = arena_take(call->arena, count, sizeof(*messages));
    for (size_t i = 0; i < count; i++)
        messages[i] = version_message(&versions[i]);
    return call_reply(
        call, MESSAGE(msg_codebase_log_response, .versions = messages, .versions_count = count),
        err);
}

int codebase_service_commit(const struct call *call,
                            const struct msg_codebase_commit_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct msg_codebase_version message;
    struct codebase_version version;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_commit_codebase(sandbox, request->message, &version, err);
    if (r < 0)
        return r;
    message = version_message(&version);
    return call_reply(call, MESSAGE(msg_codebase_commit_response, .version = &message), err);
}

static struct msg_codebase_hunk *hunk_messages(const struct call *call,
                                               const struct conflict *conflict)
{
    struct msg_codebase_hunk *messages =
        arena_take(call->arena, conflict->hunk_count, sizeof(*messages));

    for (size_t i = 0; i < conflict->hunk_count; i++)
        messages[i] = (struct msg_codebase_hunk){ .line = conflict->hunks[i].line,
                                                  .ours = conflict->hunks[i].ours,
                                                  .theirs = conflict->hunks[i].theirs };
    return messages;
}

static struct msg_codebase_conflict *conflict_messages(const struct call *call,
                                                       const struct conflicts *conflicts)
{
    struct msg_codebase_conflict *messages =
        arena_take(call->arena, conflicts->listed, sizeof(*messages));

    for (size_t i = 0; i < conflicts->listed; i++)
        messages[i] = (struct msg_codebase_conflict){
            .path = conflicts->items[i].path,
            .reason = conflicts->items[i].reason,
            .hunks = hunk_messages(call, &conflicts->items[i]),
            .hunks_count = conflicts->items[i].hunk_count,
        };
    return messages;
}

int codebase_service_apply(const struct call *call,
                           const struct msg_codebase_apply_request *request, struct err *err)
{
    const struct codebase_apply_spec spec = { .codebase = request->codebase,
                                              .directory = request->directory,
                                              .version =
                                                  request->has_version ? &request->version : NULL };
    struct codebase_applying applying;
    int r = codebase_apply(call->host, call->caller, &spec, &applying, err);

    if (r == 0)
        r = call_reply(call,
                       MESSAGE(msg_codebase_apply_response, .version = applying.version,
                               .files = applying.files,
                               .conflicts = conflict_messages(call, &applying.conflicts),
                               .conflicts_count = applying.conflicts.listed,
                               .conflict_count = applying.conflicts.count),
                       err);
    conflicts_done(&applying.conflicts);
    return r;
}

int codebase_service_branch(const struct call *call,
                            const struct msg_codebase_branch_request *request, struct err *err)
{
    const struct codebase_branch_spec spec = {
        .codebase = request->codebase,
        .branch = request->branch,
        .directory = request->directory,
        .version = request->has_version ? &request->version : NULL,
    };
    struct codebase_branching branching;
    int r = codebase_branch(call->host, call->caller, &spec, &branching, err);

    if (r < 0)
        return r;
    return call_reply(call,
                      MESSAGE(msg_codebase_branch_response, .version = branching.version,
                              .commit = branching.commit, .commits = branching.commits),
                      err);
}

static int merging_reply(const struct call *call, const struct codebase_merging *merging,
                         struct err *err)
{
    return call_reply(call,
                      MESSAGE(msg_codebase_merge_response, .base = merging->base,
                              .files = merging->files,
                              .conflicts = conflict_messages(call, &merging->conflicts),
                              .conflicts_count = merging->conflicts.listed,
                              .conflict_count = merging->conflicts.count),
                      err);
}

int codebase_service_rebase(const struct call *call,
                            const struct msg_codebase_rebase_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct codebase_merging merging = { .files = 0 };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_rebase_codebase(sandbox, (enum codebase_side)request->side, &merging, err);
    if (r == 0)
        r = merging_reply(call, &merging, err);
    conflicts_done(&merging.conflicts);
    return r;
}

int codebase_service_merge(const struct call *call,
                           const struct msg_codebase_merge_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_unref_slot) struct sandbox *from = NULL;
    struct codebase_merging merging = { .files = 0 };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_find(call->host, call->caller, request->from_sandbox_id, &from, err);
    if (r == 0)
        r = sandbox_merge_codebase(sandbox, from, (enum codebase_side)request->side, &merging, err);
    if (r == 0)
        r = merging_reply(call, &merging, err);
    conflicts_done(&merging.conflicts);
    return r;
}

int codebase_service_discard(const struct call *call,
                             const struct msg_codebase_discard_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    return r < 0 ? r : sandbox_discard_codebase(sandbox, request->path, err);
}
