/* The path permissions of a sandbox: rules (view/rules.h) for the paths of its codebase. They are
 * recorded as JSON, {"preset","generation","view","engine","reason","mask","rules":[text,...]}, and
 * kept by forks. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "host/view/mask.h"
#include "view/rules.h"

struct err;
struct sandbox;
struct sandbox_info;
struct sandbox_spec;

enum {
    PERMISSION_PRESET_MAX = 32,
    PERMISSION_ENGINE_MAX = 16,
    PERMISSION_REASON_MAX = 256,
    PERMISSIONS_TEXT_MAX = 4 * VIEW_TEXT_MAX,
};

struct permissions {
    char preset[PERMISSION_PRESET_MAX]; /* whose rules come first; "": none */
    char view[PERMISSION_ENGINE_MAX];   /* the engine that was asked for; "": Holt chooses */
    char engine[PERMISSION_ENGINE_MAX]; /* what enforces the rules, or will: see engine.h */
    char reason[PERMISSION_REASON_MAX]; /* why this one */
    char mask[MASK_NAME_SIZE];          /* what the engine shows of the codebase; "": all */
    struct view_rules *rules;           /* NULL: none, all paths can be written */
};

void permissions_done(struct permissions *permissions);

/* Reads what is recorded; NULL: none. */
int permissions_read(const char *recorded, struct permissions *ret, struct err *err);

/* What a client asks for: rules as text, behind those of a preset (NULL or "": none), and an engine
 * (NULL or "": any). */
struct permission_request {
    const char *preset;
    const char *const *rules;
    size_t count;
    const char *view;
};

/* Returns whether the request asks for anything. */
bool permission_request_is_given(const struct permission_request *request);

/* Gives the info of a new sandbox, whose codebase is known, the rules that were asked for. Those of
 * the original of a fork are replaced. ERR_INVALID for rules without a codebase. */
int permissions_assign(const struct permission_request *request, struct sandbox_info *info,
                       struct err *err);

/* Reads the permissions of a sandbox. ERR_INVALID if it has no codebase. */
int sandbox_permissions(struct sandbox *sandbox, struct permissions *ret, struct err *err);

/* Records which engine enforces the permissions of a sandbox, if that was not known. */
int sandbox_record_permissions(struct sandbox *sandbox, const struct permissions *permissions,
                               struct err *err);

enum permission_change {
    PERMISSION_SET,    /* instead of all present rules */
    PERMISSION_ADD,    /* behind the present rules; a preset is not allowed */
    PERMISSION_REMOVE, /* each must be there */
};

/* What became of files that were open during a change. */
struct permission_outcome {
    uint32_t open_files;      /* or mapped ones, that have more than the rules grant now */
    uint32_t ended_processes; /* that held one of them */
};

/* Changes the rules and records them. A running sandbox has them when this returns: each later
 * lookup and open is decided by them. Open files stay open and mapped; with `revokes`, the
 * processes that hold those which the rules would refuse now are killed. */
int sandbox_permissions_change(struct sandbox *sandbox, enum permission_change change,
                               const struct permission_request *request, bool revokes,
                               struct permission_outcome *ret, struct err *err);

/* Counts refusals of a view, and returns their list with the text of each rule in the place of its
 * index. */
json_t *sandbox_name_denials(struct sandbox *sandbox, const json_t *denials, uint64_t count);

/* Writes the path inside the mount point for a path of a client's: absolute in the sandbox, or
 * relative to the mount point. ERR_INVALID for one that is not below it. */
int permission_path(const struct sandbox_info *info, const char *path, char *ret, size_t size,
                    struct err *err);
