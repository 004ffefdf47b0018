// SPDX-License-Identifier: Apache-2.0
#include "api/message/permission_messages.h"

#include "base/arena.h"
#include "base/err.h"
#include "host/sandbox/info.h"
#include "host/view/permission.h"

static void rules_message(struct arena *arena, const struct view_rules *rules,
                          struct msg_permissions *ret)
{
    const size_t count = view_rules_count(rules);
    const char **texts = arena_take(arena, count, sizeof(*texts));
    char text[VIEW_RULE_TEXT_SIZE];

    for (size_t i = 0; i < count; i++) {
        view_rule_format(view_rules_at(rules, i), text);
        texts[i] = arena_copy_text(arena, text);
    }
    ret->rules = texts;
    ret->rules_count = count;
}

struct msg_permissions permissions_message(struct arena *arena, const struct sandbox_info *info,
                                           bool has_rules)
{
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    struct msg_permissions message = { .path = info->codebase_path, .denials = info->denials };
    struct err ignored;

    if (permissions_read(info->permissions, &permissions, &ignored) < 0 || !permissions.rules)
        return message;
    message.enforced = true;
    message.preset = arena_copy_text(arena, permissions.preset);
    message.generation = view_rules_generation(permissions.rules);
    message.engine = arena_copy_text(arena, permissions.engine);
    message.engine_reason = arena_copy_text(arena, permissions.reason);
    if (has_rules)
        rules_message(arena, permissions.rules, &message);
    return message;
}

struct permission_request permission_request_of(const struct msg_permission_policy *message)
{
    if (!message)
        return (struct permission_request){ .preset = NULL };
    return (struct permission_request){ .preset = message->preset,
                                        .rules = message->rules,
                                        .count = message->rules_count,
                                        .view = message->view };
}
