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
struct msg_sandbox sandbox_message(const struct sandbox_info *info, bool has_space,
                                   struct arena *arena);
struct msg_snapshot snapshot_message(const struct snapshot_info *info);
struct msg_template template_message(const struct template_info *info);
struct msg_capabilities capabilities_message(const struct host_capabilities *can);

/* Replies with a SandboxResponse: the sandbox as it is now. */
int sandbox_reply(const struct call *call, struct sandbox *sandbox, struct err *err);
