// SPDX-License-Identifier: Apache-2.0
/* Takes changes of a sandbox in its codebase back. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/files/file_entry.h"
#include "base/json.h"
#include "host/codebase/rework.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/codebase/apply.h"
#include "store/codebase/codebase.h"

#define TEMPORARY ".holt-discard"

DEFINE_CLEANUP(apply_plan_free, struct apply_plan *);

/* Turns a path as in the sandbox, or relative to the top, into one that starts at the top with a
 * slash; "/": the top. */
static int path_find(const struct sandbox *sandbox, const char *path, char ret[static PATH_MAX],
                     struct err *err)
{
    const char *top = sandbox->info.codebase_path;
    const size_t top_len = strlen(top);
    char clean[ENTRY_PATH_MAX + 1];
    int r = entry_path_from(top, path, clean);

    if (r < 0)
        return err_set(err, ERR_INVALID, "path '%.100s' is too long", path);
    if (strncmp(clean, top, top_len) != 0 || (clean[top_len] != '/' && clean[top_len] != '\0'))
        return err_set(err, ERR_INVALID, "path '%.100s' is not in the codebase at '%.100s'", path,
                       top);
    (void)snprintf(ret, PATH_MAX, "%s", clean[top_len] ? clean + top_len : "/");
    return 0;
}

/* There are no conflicts: the copy is one of the two sides. */
static int conflict_take(void *context, const struct apply_conflict *conflict,
                         struct apply_choice *choice, struct err *err)
{
    (void)context;
    (void)conflict;
    (void)err;
    choice->side = APPLY_TAKE;
    return 0;
}

/* Makes one path of the copy that of the base. Returns the number of paths that differed. */
static int path_restore(const struct rework *rework, const char *path, int base_fd, struct err *err)
{
    cleanup_with(apply_plan_free_slot) struct apply_plan *plan = NULL;
    const struct apply apply = {
        .dir_fd = rework->copy_fd,
        .from_fd = rework->copy_fd,
        .to_fd = base_fd,
        .path = path,
        .temporary = TEMPORARY,
        .keeps_owner = true,
        .conflict = conflict_take,
    };
    int r = apply_plan(&apply, &plan, err);

    if (r == 0)
        r = apply_run(plan, err);
    return r < 0 ? r : apply_count(plan) > 0;
}

static int discard_path(struct rework *rework, const char *path, struct err *err)
{
    const struct sandbox_info *info = &rework->sandbox->info;
    cleanup_close int base_fd = -EBADF;
    char below[PATH_MAX];
    int r = path_find(rework->sandbox, path, below, err);

    if (r < 0)
        return r;
    base_fd =
        codebase_open_version(rework->sandbox->host->store, info->codebase, info->codebase_base);
    if (base_fd < 0)
        return err_sys(err, base_fd, "open version %u of codebase '%s'", info->codebase_base,
                       info->codebase);
    r = path_restore(rework, below, base_fd, err);
    if (r == 0)
        r = err_set(err, ERR_INVALID, "sandbox '%s' has no changes at '%.100s'", info->id, path);
    return r < 0 ? r : rework_finish(rework, info->codebase_base, false, err);
}

int sandbox_discard_codebase(struct sandbox *sandbox, const char *path, struct err *err)
{
    struct rework rework;
    int r = rework_begin(&rework, sandbox, err);

    if (r < 0)
        return r;
    fault_point("discard.taken");
    r = *path ? discard_path(&rework, path, err)
              : rework_finish(&rework, sandbox->info.codebase_base, true, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_CODEBASE_DISCARDED,
                      json_pack("{s:s, s:I}", "codebase", sandbox->info.codebase, "version",
                                (json_int_t)sandbox->info.codebase_base));
    rework_end(&rework);
    return r;
}
