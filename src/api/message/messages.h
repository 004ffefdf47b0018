/* Messages that several services answer with. What a message points to lives as long as the info it
 * is made of and the arena. */
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
