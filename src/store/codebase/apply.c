// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/files/file_entry.h"
#include "base/files/tree.h"
#include "base/files/tree_source.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/codebase/apply_internal.h"

struct apply_plan {
    struct apply apply;
    struct differences differences;
    struct apply_item *items; /* in the order of paths */
    size_t count;
};

void apply_plan_free(struct apply_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->count; i++)
        free(plan->items[i].text);
    free(plan->items);
    differences_done(&plan->differences);
    free(plan);
}

size_t apply_count(const struct apply_plan *plan)
{
    return plan->count;
}

const char *apply_path(const struct apply_plan *plan, size_t index)
{
    return plan->items[index].here.path;
}

static bool is_dir(const struct tree_entry *entry)
{
    return entry->exists && S_ISDIR(entry->st.st_mode);
}

/* Returns whether the directory has, above a path that is to be made, something other than
 * directories that `from` does not have: 1, 0 or -errno. */
static int is_parent_blocked(const struct apply *apply, const char *path)
{
    char parent[PATH_MAX];

    if (strlen(path) >= sizeof(parent))
        return -ENAMETOOLONG;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct tree_entry here, from = { .exists = false };
        int r;

        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        r = tree_entry_find(apply->dir_fd, parent, &here);
        if (r == 0)
            r = tree_entry_find(apply->from_fd, parent, &from);
        if (r < 0)
            return r;
        if (!here.exists)
            return 0;
        if (!is_dir(&here))
            return !from.exists || is_dir(&from);
    }
    return 0;
}

struct extra_search {
    const struct apply *apply;
    const char *top;
};

static int extra_try(void *context, const struct file_entry *entry)
{
    const struct extra_search *search = context;
    struct tree_entry from;
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/%s", search->top, entry->path);
    int r;

    if (len < 0 || (size_t)len >= sizeof(path))
        return -EEXIST;
    r = tree_entry_find(search->apply->from_fd, path, &from);
    return r == 0 && !from.exists ? -EEXIST : r;
}

static int trouble_stop(void *context, const char *path, int errnum)
{
    (void)context;
    (void)path;
    return -errnum;
}

/* Returns whether a directory that is to become something else contains what `from` does not have:
 * 1, 0 or -errno. */
static int has_extra(const struct apply *apply, const char *path)
{
    static const struct tree_source options = { .skips_top = true };
    static const struct tree_source_ops ops = { .entry = extra_try, .trouble = trouble_stop };
    struct extra_search search = { .apply = apply, .top = path };
    int r = tree_source_run(apply->dir_fd, path, &options, &ops, &search);

    return r == -EEXIST ? 1 : r;
}

/* Returns whether the path may be written as it is: 1, 0 (a conflict) or -errno. */
static int is_free(const struct apply *apply, const struct tree_entry *from,
                   const struct tree_entry *to, const struct tree_entry *here)
{
    int r = tree_entry_same(here, from, apply->keeps_owner);

    if (r == 0 && apply->is_resumed && !here->exists)
        r = 1;
    if (r == 1 && to->exists) {
        r = is_parent_blocked(apply, here->path);
        r = r < 0 ? r : !r;
    }
    if (r == 1 && to->exists && is_dir(here) && !is_dir(to)) {
        r = has_extra(apply, here->path);
        r = r < 0 ? r : !r;
    }
    return r;
}

static void item_add(struct apply_plan *plan, const struct tree_entry *here,
                     const struct tree_entry *to, const struct apply_choice *choice)
{
    struct apply_item *item;

    if ((plan->count & (plan->count - 1)) == 0) /* doubles at powers of two */
        plan->items =
            xreallocarray(plan->items, plan->count > 0 ? 2 * plan->count : 1, sizeof(*plan->items));
    item = &plan->items[plan->count++];
    *item = (struct apply_item){ .here = *here, .to = *to };
    if (!choice)
        return;
    item->is_forced = true;
    item->text = choice->text;
    item->text_len = choice->text_len;
    item->mode = choice->mode;
}

static int conflict_settle(struct apply_plan *plan, const struct apply_conflict *conflict,
                           struct err *err)
{
    struct apply_choice choice = { .side = APPLY_KEEP };
    int r = plan->apply.conflict(plan->apply.context, conflict, &choice, err);

    if (r == 0 && choice.side != APPLY_KEEP)
        item_add(plan, conflict->here, conflict->to, &choice);
    return r;
}

static int path_plan(struct apply_plan *plan, const char *path, struct err *err)
{
    const struct apply *apply = &plan->apply;
    struct tree_entry from, to, here;
    const struct apply_conflict conflict = { &from, &to, &here };
    int r = tree_entry_find(apply->from_fd, path, &from);

    if (r == 0)
        r = tree_entry_find(apply->to_fd, path, &to);
    if (r == 0)
        r = tree_entry_find(apply->dir_fd, path, &here);
    if (r == 0 && !to.exists && is_dir(&here) && !is_dir(&from))
        return 0; /* what was to go has gone, and a directory has its name */
    if (r == 0)
        r = tree_entry_same(&from, &to, apply->keeps_owner);
    if (r == 0)
        r = tree_entry_same(&here, &to, apply->keeps_owner);
    if (r == 0) {
        r = is_free(apply, &from, &to, &here);
        if (r == 0)
            return conflict_settle(plan, &conflict, err);
        if (r == 1)
            item_add(plan, &here, &to, NULL);
    }
    return r < 0 ? err_sys(err, r, "compare '%.150s'", path) : 0;
}

int apply_plan(const struct apply *apply, struct apply_plan **ret, struct err *err)
{
    struct apply_plan *plan = xcalloc(1, sizeof(*plan));
    int r;

    *plan = (struct apply_plan){ .apply = *apply, .differences = DIFFERENCES_INIT };
    r = differences_list(&plan->differences, apply->from_fd, apply->to_fd, apply->path, err);
    for (size_t i = 0; r == 0 && i < plan->differences.count; i++) {
        const char *path = plan->differences.paths[i];

        if (*path == '\0') /* the top is that of the directory */
            continue;
        if (apply->is_resumed)
            apply_clean(apply, path);
        r = path_plan(plan, path, err);
    }
    if (r < 0) {
        apply_plan_free(plan);
        return r;
    }
    *ret = plan;
    return 0;
}

static int item_error(const struct apply_item *item, int r, struct err *err)
{
    if (r == -ESTALE)
        return err_set(err, ERR_BUSY, "'%.150s' is being changed", item->here.path);
    return err_sys(err, r, "write '%.150s'", item->here.path);
}

/* Removals come first, the innermost first: a file may become a directory. */
int apply_run(struct apply_plan *plan, struct err *err)
{
    for (size_t i = plan->count; i-- > 0;) {
        const struct apply_item *item = &plan->items[i];
        int r = !item->to.exists && !item->text ? apply_remove(&plan->apply, item) : 0;

        if (r < 0)
            return item_error(item, r, err);
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct apply_item *item = &plan->items[i];
        int r = item->to.exists || item->text ? apply_write(&plan->apply, item) : 0;

        if (r < 0)
            return item_error(item, r, err);
        fault_point("apply.path");
    }
    return 0;
}
