/* Messages that several services reply with. They point into the info that they are made from and
 * into the arena, and are valid as long as both. */
#pragma once

#include <stdbool.h>

#include "wire/holt_v1.h"

struct arena;
struct call;
struct err;
struct host_capabilities;
struct sandbox;
struct sandbox_info;
struct snapshot_info;
struct template_info;

/* In place of a snapshot's name: the template, without any change. */
#define SNAPSHOT_TEMPLATE "template"

/* has_space: the space used is known. */
struct msg_sandbox sandbox_message(const struct call *call, const struct sandbox_info *info,
                                   bool has_space);

/* Fills in with which owners an object is shared: either all, or those of the list. The list is
 * copied to the arena. */
struct share;
void shares_message(const struct share *list, size_t count, struct arena *arena, bool *ret_public,
                    const char *const **ret_owners, size_t *ret_count);
struct msg_snapshot snapshot_message(const struct snapshot_info *info);
struct msg_template template_message(const struct template_info *info);

/* The message of a template under the name that its owner gave it. */
struct template_record;
struct msg_template owned_template_message(const struct template_record *record,
                                           const struct template_info *info);
struct msg_capabilities capabilities_message(const struct host_capabilities *can);

/* Replies with a SandboxResponse: the sandbox as it is now. */
int sandbox_reply(const struct call *call, struct sandbox *sandbox, struct err *err);
