/* What enforces the permissions of a sandbox: "fuse", a file server (viewfs/), whatever the rules
 * are; or "kernel", an overlay without a server, where that means the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct mask;
struct permissions;
struct sandbox;

#define ENGINE_FUSE "fuse"
#define ENGINE_KERNEL "kernel"

/* Chooses by rules and runtime, and says why. The mask of a version is named, if there is to be
 * one. ERR_INVALID if the engine that was asked for cannot enforce these rules. */
int engine_choose(struct permissions *permissions, const char *runtime, uint32_t version,
                  struct err *err);

/* Makes it the file server, and says why. ERR_INVALID if the other engine was asked for. */
int engine_use_fuse(struct permissions *permissions, const char *reason, struct err *err);

/* Returns whether a file server enforces the rules. */
bool engine_is_fuse(const struct permissions *permissions);

/* Chooses for the live tree of a sandbox that is about to start, and opens the mask if that takes
 * one. What was chosen is recorded. The mask is to be released once it is mounted. */
int engine_prepare(struct sandbox *sandbox, struct permissions *permissions, struct mask *mask,
                   struct err *err);
