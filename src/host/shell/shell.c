// SPDX-License-Identifier: Apache-2.0
/* The shells of a sandbox and their processes. */
#include "host/shell/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/observe/event_internal.h"
#include "host/process/process_internal.h"
#include "host/shell/file.h"
#include "host/shell/link.h"
#include "host/shell/shell_internal.h"

enum { ROWS = 24, COLUMNS = 80 };

const char *shell_kind_name(enum shell_kind kind)
{
    static const char *const names[] = {
        [SHELL_NONE] = "", [SHELL_BASH] = "bash", [SHELL_SH] = "sh"
    };

    return names[kind];
}

struct shell *shell_new(const char *name)
{
    struct shell *shell = xcalloc(1, sizeof(*shell));

    atomic_init(&shell->refs, 1);
    (void)snprintf(shell->name, sizeof(shell->name), "%s", name);
    return shell;
}

void shell_unref(struct shell *shell)
{
    if (!shell || atomic_fetch_sub(&shell->refs, 1) != 1)
        return;
    process_unref(shell->process);
    free(shell);
}

struct shell *shell_find(struct sandbox *sandbox, const char *name)
{
    struct shell *shell = sandbox->shells;

    while (shell && strcmp(shell->name, name) != 0)
        shell = shell->next;
    return shell;
}

void shell_enlist(struct sandbox *sandbox, struct shell *shell)
{
    struct shell **slot = &sandbox->shells;

    while (*slot && strcmp((*slot)->name, shell->name) < 0)
        slot = &(*slot)->next;
    shell->next = *slot;
    *slot = shell;
}

bool shell_is_gone(const struct process_end *end)
{
    return end->outcome == OUTCOME_EXITED || end->outcome == OUTCOME_SIGNALED ||
           end->outcome == OUTCOME_OOM ||
           (end->outcome == OUTCOME_KILLED && end->killer == KILLER_USER);
}

struct process *shell_live_process(struct sandbox *sandbox, struct shell *shell)
{
    struct process *process, *ended = NULL;
    bool is_gone;

    lock_take(&sandbox->lock);
    if (shell->process && process_is_over(shell->process))
        ended = TAKE_PTR(shell->process);
    is_gone = ended && shell_is_gone(&ended->end);
    process = shell->process ? process_ref(shell->process) : NULL;
    lock_release(&sandbox->lock);
    if (is_gone) {
        shell_file_remove(sandbox, shell->name);
        sandbox_event(sandbox, EVENT_SHELL_CLOSED, json_pack("{s:s}", "shell", shell->name));
    }
    process_unref(ended);
    return process;
}

int shell_spawn(struct sandbox *sandbox, struct shell *shell, enum shell_kind kind,
                struct process **ret, struct err *err)
{
    static char *const bash[] = { (char *)(uintptr_t) "bash", (char *)(uintptr_t) "--rcfile",
                                  (char *)(uintptr_t)SHELL_BASH_RC, (char *)(uintptr_t) "-i",
                                  NULL };
    static char *const sh[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-i",
                                (char *)(uintptr_t)SHELL_SH_SCRIPT_PATH, NULL };
    static char *const sh_env[] = { (char *)(uintptr_t) "PS1=", NULL };
    struct process_spec spec = {
        .args = kind == SHELL_BASH ? bash : sh,
        .env = kind == SHELL_BASH ? NULL : sh_env,
        .has_terminal = true,
        .rows = ROWS,
        .columns = COLUMNS,
        .shell = kind,
        .is_detached = true,
    };
    char user[sizeof(shell->user)], tier[sizeof(shell->tier)];
    struct process *process, *old;
    int r;

    lock_take(&sandbox->lock);
    memcpy(user, shell->user, sizeof(user));
    memcpy(tier, shell->tier, sizeof(tier));
    lock_release(&sandbox->lock);
    spec.user = *user ? user : NULL;
    spec.tier = *tier ? tier : NULL;
    r = sandbox_exec(sandbox, &spec, &process, err);

    if (r < 0)
        return r;
    (void)process_ref(process); /* the shell's reference */
    lock_take(&sandbox->lock);
    old = shell->process;
    shell->process = process;
    shell->kind = kind;
    lock_release(&sandbox->lock);
    process_unref(old);
    shell_file_record(sandbox, shell->name, kind, process);
    sandbox_event(sandbox, EVENT_SHELL_OPENED,
                  json_pack("{s:s, s:s, s:s}", "shell", shell->name, "kind", shell_kind_name(kind),
                            "process", process->id));
    *ret = process;
    return 0;
}

/* Locked. Returns whether the shell exists for clients: it runs, is queued for, or has a saved
 * state. */
static bool shell_exists(const struct shell *shell)
{
    return shell->is_dormant || shell->queued > 0 ||
           (shell->process && !process_is_over(shell->process));
}

bool shell_has_user(struct shell *shell)
{
    return shell->is_dormant || (shell->process && !process_is_over(shell->process));
}

/* Locked. */
static void shell_fill_info(struct shell *shell, struct shell_info *ret)
{
    *ret = (struct shell_info){ .kind = shell->kind, .commands = shell->commands };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", shell->name);
    if (shell->process && !process_is_over(shell->process))
        (void)snprintf(ret->process, sizeof(ret->process), "%s", process_id(shell->process));
    ret->is_busy = shell->queued > 0;
    ret->waiting = shell->queued > 0 ? shell->queued - 1 : 0;
    if (shell_has_user(shell)) {
        (void)snprintf(ret->user, sizeof(ret->user), "%s", shell->user);
        (void)snprintf(ret->tier, sizeof(ret->tier), "%s", shell->tier);
    }
}

int shell_list(struct sandbox *sandbox, struct shell_info **ret, size_t *ret_count, struct err *err)
{
    size_t count = 0, i = 0;

    (void)err;
    lock_take(&sandbox->lock);
    for (const struct shell *shell = sandbox->shells; shell; shell = shell->next)
        count++;
    *ret = xcalloc(count + 1, sizeof(**ret));
    for (struct shell *shell = sandbox->shells; shell; shell = shell->next)
        if (shell_exists(shell))
            shell_fill_info(shell, &(*ret)[i++]);
    lock_release(&sandbox->lock);
    *ret_count = i;
    return 0;
}

static int shell_refuse_unknown(const struct sandbox *sandbox, const char *name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "sandbox '%s' has no shell '%.70s'", sandbox->info.id, name);
}

int shell_get(struct sandbox *sandbox, const char *name, struct shell_info *ret, struct err *err)
{
    struct shell *shell;
    bool is_there;

    lock_take(&sandbox->lock);
    shell = shell_find(sandbox, name);
    is_there = shell && shell_exists(shell);
    if (is_there)
        shell_fill_info(shell, ret);
    lock_release(&sandbox->lock);
    return is_there ? 0 : shell_refuse_unknown(sandbox, name, err);
}

int shell_open(struct sandbox *sandbox, const char *name, struct shell_info *ret, struct err *err)
{
    return shell_open_with(sandbox, &(struct shell_command){ .name = name }, ret, err);
}

/* An empty command starts the shell unless it runs. */
int shell_open_with(struct sandbox *sandbox, const struct shell_command *command,
                    struct shell_info *ret, struct err *err)
{
    const char *name = command->name;
    struct shell_command opening = *command;
    struct shell_event event = { .kind = SHELL_EVENT_STARTED };
    struct shell_run *run = NULL;
    struct shell *shell;
    char data[64];
    int r;

    opening.text = "";
    r = shell_run_new(sandbox, &opening, &run, err);
    while (r == 0 && event.kind != SHELL_EVENT_ENDED)
        r = shell_run_next(run, -1, data, sizeof(data), &event, err);
    shell_run_free(run);
    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    shell = shell_find(sandbox, name);
    if (shell)
        shell_fill_info(shell, ret);
    lock_release(&sandbox->lock);
    return shell ? 0 : err_set(err, ERR_BUSY, "shell '%s' was removed", name);
}

int shell_remove(struct sandbox *sandbox, const char *name, struct err *err)
{
    struct process *process = NULL;
    struct shell **slot, *shell;

    lock_take(&sandbox->lock);
    slot = &sandbox->shells;
    while (*slot && strcmp((*slot)->name, name) != 0)
        slot = &(*slot)->next;
    shell = *slot;
    if (shell) {
        *slot = shell->next;
        process = TAKE_PTR(shell->process);
    }
    lock_release(&sandbox->lock);
    if (!shell)
        return shell_refuse_unknown(sandbox, name, err);
    shell_file_remove(sandbox, name);
    if (process)
        process_kill(process, KILLER_USER);
    process_unref(process);
    sandbox_event(sandbox, EVENT_SHELL_CLOSED, json_pack("{s:s}", "shell", shell->name));
    shell_unref(shell);
    return 0;
}
