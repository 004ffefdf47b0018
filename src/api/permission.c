// SPDX-License-Identifier: Apache-2.0
#include "host/view/permission.h"

#include <errno.h>

#include "api/message/permission_messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "host/sandbox/sandbox.h"
#include "host/view/query.h"

int permission_service_list(const struct call *call,
                            const struct msg_permission_list_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_permissions message;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_permissions(sandbox, &permissions, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &info);
    message = permissions_message(call->arena, &info, true);
    return call_reply(call, MESSAGE(msg_permission_list_response, .permissions = &message), err);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* What the three methods have in common. The message points into `room`. */
struct change {
    const char *sandbox_id;
    enum permission_change kind;
    struct permission_request request;
    bool revokes;
};

static int change_make(const struct call *call, const struct change *change,
                       struct sandbox_info *room, struct msg_permission_change *ret,
                       struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct msg_permissions *message = arena_take(call->arena, 1, sizeof(*message));
    struct permission_outcome outcome;
    int r = sandbox_find(call->host, call->caller, change->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_permissions_change(sandbox, change->kind, &change->request, change->revokes,
                                       &outcome, err);
    if (r < 0)
        return call_result(call, r, err);
    sandbox_get_info(sandbox, false, room);
    *message = permissions_message(call->arena, room, true);
    *ret = (struct msg_permission_change){ .permissions = message,
                                           .open_files = outcome.open_files,
                                           .ended_processes = outcome.ended_processes };
    return 0;
}

int permission_service_set(const struct call *call,
                           const struct msg_permission_set_request *request, struct err *err)
{
    const struct change change = {
        request->sandbox_id,
        PERMISSION_SET,
        { .preset = request->preset, .rules = request->rules, .count = request->rules_count },
        request->revoke
    };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_permission_change made;
    int r = change_make(call, &change, &info, &made, err);

    return r < 0 ? r : call_reply(call, MESSAGE(msg_permission_set_response, .change = &made), err);
}

int permission_service_add(const struct call *call,
                           const struct msg_permission_add_request *request, struct err *err)
{
    const struct change change = { request->sandbox_id,
                                   PERMISSION_ADD,
                                   { .rules = request->rules, .count = request->rules_count },
                                   request->revoke };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_permission_change made;
    int r = change_make(call, &change, &info, &made, err);

    return r < 0 ? r : call_reply(call, MESSAGE(msg_permission_add_response, .change = &made), err);
}

int permission_service_remove(const struct call *call,
                              const struct msg_permission_remove_request *request, struct err *err)
{
    const struct change change = { request->sandbox_id,
                                   PERMISSION_REMOVE,
                                   { .rules = request->rules, .count = request->rules_count },
                                   request->revoke };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_permission_change made;
    int r = change_make(call, &change, &info, &made, err);

    return r < 0 ? r
                 : call_reply(call, MESSAGE(msg_permission_remove_response, .change = &made), err);
}

/* --- questions -------------------------------------------------------------------------------- */

int permission_service_why(const struct call *call,
                           const struct msg_permission_why_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct permission_answer *answer = arena_take(call->arena, 1, sizeof(*answer));
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = permission_why(sandbox, request->path, answer, err);
    if (r < 0)
        return r;
    return call_reply(call,
                      MESSAGE(msg_permission_why_response, .path = answer->path,
                              .level = view_level_name(answer->decision.level),
                              .rule = answer->rule, .number = (uint32_t)(answer->decision.rule + 1),
                              .traversable = answer->is_traversable,
                              .would_take = answer->would_take),
                      err);
}

int permission_service_test(const struct call *call,
                            const struct msg_permission_test_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct permission_answer *answer = arena_take(call->arena, 1, sizeof(*answer));
    const struct permission_operation operation = { request->operation, request->path,
                                                    request->to };
    int errnum = 0;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = permission_test(sandbox, &operation, answer, &errnum, err);
    if (r < 0)
        return r;
    return call_reply(call,
                      MESSAGE(msg_permission_test_response, .allowed = errnum == 0,
                              .error = errnum == 0        ? ""
                                       : errnum == ENOENT ? "ENOENT"
                                                          : "EACCES",
                              .path = answer->path,
                              .level = view_level_name(answer->decision.level),
                              .rule = answer->rule),
                      err);
}

int permission_service_tree(const struct call *call,
                            const struct msg_permission_tree_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(permission_tree_done) struct permission_tree tree = { .entries = NULL };
    struct msg_permission_entry *entries;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = permission_tree(sandbox, request->path, request->depth, &tree, err);
    if (r < 0)
        return r;
    entries = arena_take(call->arena, tree.count, sizeof(*entries));
    for (size_t i = 0; i < tree.count; i++)
        entries[i] = (struct msg_permission_entry){
            .path = tree.entries[i].path,
            .directory = tree.entries[i].is_directory,
            .level = view_level_name(tree.entries[i].decision.level),
            .number = (uint32_t)(tree.entries[i].decision.rule + 1),
        };
    return call_reply(call,
                      MESSAGE(msg_permission_tree_response, .entries = entries,
                              .entries_count = tree.count, .truncated = tree.is_truncated),
                      err);
}
