/* Messages about permissions. They point into the info and the arena. */
#pragma once

#include <stdbool.h>

#include "wire/holt_v1.h"

struct arena;
struct permission_request;
struct sandbox_info;

/* Returns the permissions of a sandbox that has a codebase. */
struct msg_permissions permissions_message(struct arena *arena, const struct sandbox_info *info,
                                           bool has_rules);

/* Reads what a request asks for; NULL: nothing. The result points into the message. */
struct permission_request permission_request_of(const struct msg_permission_policy *message);
