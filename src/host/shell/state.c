// SPDX-License-Identifier: Apache-2.0
#include "host/shell/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/shell/file.h"
#include "host/shell/shell_internal.h"

#define USER_LINE "# user "
#define TIER_LINE "# tier "

/* These scripts print a script that restores the state of the shell. Assignments that a shell
 * forbids, such as that of its version, fail without harm. Options come last: with some of them,
 * such a failure would end the new shell. The trap by which the guest sends commands is left
 * out: bash crashes if the trap it runs in is changed. */
static const char bash_script[] = "\\builtin shopt -p || \\:\n"
                                  "\\builtin echo '\\unalias -a'\n"
                                  "\\builtin declare -p\n"
                                  "\\builtin declare -f\n"
                                  "\\builtin alias -p\n"
                                  "\\builtin umask -p\n"
                                  "\\builtin trap -p {0..27} 29 30 31 DEBUG ERR RETURN || \\:\n"
                                  "\\builtin printf '\\\\builtin cd -- %q\\n' \"$PWD\"\n"
                                  "\\builtin set +o\n";

/* POSIX sh cannot list functions. */
static const char sh_script[] = "set\n"
                                "export -p\n"
                                "readonly -p\n"
                                "alias | while read -r line; do echo \"alias $line\"; done\n"
                                "echo \"umask $(umask)\"\n"
                                "trap\n"
                                "echo 'cd -- \"$PWD\"'\n"
                                "set +o\n";

/* Lists all shells, NULL-terminated, each with a reference. */
static struct shell **shells_list(struct sandbox *sandbox)
{
    struct shell **list;
    size_t count = 0, i = 0;

    lock_take(&sandbox->lock);
    for (const struct shell *shell = sandbox->shells; shell; shell = shell->next)
        count++;
    list = xcalloc(count + 1, sizeof(struct shell *));
    for (struct shell *shell = sandbox->shells; shell; shell = shell->next) {
        atomic_fetch_add(&shell->refs, 1);
        list[i++] = shell;
    }
    lock_release(&sandbox->lock);
    return list;
}

static bool sandbox_has_shells(struct sandbox *sandbox)
{
    bool has;

    lock_take(&sandbox->lock);
    has = sandbox->shells;
    lock_release(&sandbox->lock);
    return has;
}

/* Returns whether the state may differ from the saved one: after a command or terminal input. */
static bool shell_is_changed(struct sandbox *sandbox, struct shell *shell, uint64_t *ret_input)
{
    bool is;

    *ret_input = 0;
    lock_take(&sandbox->lock);
    if (shell->process) {
        lock_take(&shell->process->machine->lock);
        *ret_input = shell->process->input_sent;
        lock_release(&shell->process->machine->lock);
    }
    is = shell->is_changed || *ret_input != shell->state_input;
    lock_release(&sandbox->lock);
    return is;
}

static void shell_save(struct sandbox *sandbox, struct shell *shell)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);
    uint64_t input;

    if (!shell_is_changed(sandbox, shell, &input))
        return;
    (void)buf_printf(&state, "# %s\n", shell_kind_name(shell->kind));
    if (*shell->user)
        (void)buf_printf(&state, USER_LINE "%s\n", shell->user);
    if (*shell->tier)
        (void)buf_printf(&state, TIER_LINE "%s\n", shell->tier);
    if (shell_run_hidden(sandbox, shell, shell->kind == SHELL_SH ? sh_script : bash_script,
                         &state) < 0 ||
        memchr(state.data, '\0', state.len) ||
        shell_file_write_now(sandbox, shell->name, &state) < 0)
        return;
    lock_take(&sandbox->lock);
    shell->is_changed = false;
    shell->state_input = input;
    lock_release(&sandbox->lock);
}

void shells_save(struct sandbox *sandbox)
{
    cleanup_free struct shell **list = NULL;

    if (!sandbox_has_shells(sandbox) || sandbox->info.state != SANDBOX_ACTIVE)
        return;
    list = shells_list(sandbox);
    for (size_t i = 0; list[i]; i++) {
        shell_save(sandbox, list[i]);
        shell_unref(list[i]);
    }
}

void shells_link_snapshot(struct sandbox *sandbox, const char *snapshot)
{
    cleanup_free struct shell **list = NULL;

    if (!sandbox_has_shells(sandbox))
        return;
    list = shells_list(sandbox);
    for (size_t i = 0; list[i]; i++) {
        (void)shell_file_link_snapshot(sandbox, list[i]->name, snapshot);
        shell_unref(list[i]);
    }
}

struct snapshot_walk {
    struct sandbox *sandbox;
    const char *snapshot;
};

static void shell_drop_snapshot(void *context, const char *name)
{
    const struct snapshot_walk *walk = context;

    shell_file_drop_snapshot(walk->sandbox, name, walk->snapshot);
}

void shells_drop_snapshot(struct sandbox *sandbox, const char *snapshot)
{
    struct snapshot_walk walk = { sandbox, snapshot };

    shell_file_each(sandbox, shell_drop_snapshot, &walk);
}

/* The start of a saved state. */
struct saved {
    enum shell_kind kind; /* SHELL_NONE: there is none */
    char user[PROCESS_USER_MAX + 1];
    char tier[PROCESS_TIER_MAX + 1];
};

/* Reads the rest of the line at *at, if it begins so, and goes to the next one. */
static void saved_read_line(const char **at, const char *begin, char *ret, size_t size)
{
    const char *line = *at + strlen(begin);
    size_t len;

    if (strncmp(*at, begin, strlen(begin)) != 0)
        return;
    len = strcspn(line, "\n");
    if (len < size)
        memcpy(ret, line, len);
    *at = line + len + (line[len] == '\n');
}

/* The lines after the first one of a saved state name the user, if that is not root, and the tier,
 * if it has one. */
static void saved_read_lines(const char *state, struct saved *ret)
{
    const char *at = state + strcspn(state, "\n");

    at += *at == '\n';
    saved_read_line(&at, USER_LINE, ret->user, sizeof(ret->user));
    saved_read_line(&at, TIER_LINE, ret->tier, sizeof(ret->tier));
}

static struct saved shell_read_saved(struct sandbox *sandbox, const char *name)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);
    struct saved saved = { .kind = SHELL_NONE };

    if (shell_file_read_now(sandbox, name, &state) < 0 || !state.data)
        return saved;
    saved.kind = strncmp(state.data, "# sh\n", 5) == 0 ? SHELL_SH : SHELL_BASH;
    saved_read_lines(state.data, &saved);
    return saved;
}

/* Locked. Makes the next process restore the saved state. Returns the old process, whose
 * reference passes to the caller. */
static struct process *shell_set_dormant(struct shell *shell, const struct saved *saved)
{
    shell->is_dormant = saved->kind != SHELL_NONE;
    if (shell->is_dormant)
        shell->kind = saved->kind;
    memcpy(shell->user, saved->user, sizeof(shell->user));
    memcpy(shell->tier, saved->tier, sizeof(shell->tier));
    shell->is_changed = false;
    shell->state_input = 0;
    return TAKE_PTR(shell->process);
}

void shells_set_dormant(struct sandbox *sandbox)
{
    cleanup_free struct shell **list = NULL;

    if (!sandbox_has_shells(sandbox))
        return;
    list = shells_list(sandbox);
    for (size_t i = 0; list[i]; i++) {
        const struct saved saved = shell_read_saved(sandbox, list[i]->name);
        struct process *process;

        lock_take(&sandbox->lock);
        process = shell_set_dormant(list[i], &saved);
        lock_release(&sandbox->lock);
        process_unref(process);
        shell_unref(list[i]);
    }
}

static void shell_delist(struct sandbox *sandbox, const char *name)
{
    struct shell **slot, *shell;

    lock_take(&sandbox->lock);
    slot = &sandbox->shells;
    while (*slot && strcmp((*slot)->name, name) != 0)
        slot = &(*slot)->next;
    shell = *slot;
    if (shell)
        *slot = shell->next;
    lock_release(&sandbox->lock);
    shell_unref(shell);
}

static void shell_restore_snapshot(void *context, const char *name)
{
    const struct snapshot_walk *walk = context;
    struct sandbox *sandbox = walk->sandbox;
    struct process *process;
    struct shell *shell;
    struct saved saved;

    if (shell_file_restore_snapshot(sandbox, name, walk->snapshot) < 0) {
        shell_file_remove(sandbox, name);
        shell_delist(sandbox, name);
        return;
    }
    saved = shell_read_saved(sandbox, name);
    lock_take(&sandbox->lock);
    shell = shell_find(sandbox, name);
    if (!shell) {
        shell = shell_new(name);
        shell_enlist(sandbox, shell);
    }
    process = shell_set_dormant(shell, &saved);
    lock_release(&sandbox->lock);
    process_unref(process);
}

void shells_restore_snapshot(struct sandbox *sandbox, const char *snapshot)
{
    struct snapshot_walk walk = { sandbox, snapshot };

    shell_file_each(sandbox, shell_restore_snapshot, &walk);
}

/* --- over a restart of the daemon ------------------------------------------------------------ */

/* Returns the process with this number if it is a running shell. */
static struct process *shell_find_process(struct sandbox *sandbox, uint32_t number)
{
    struct machine *machine = sandbox->machine;
    struct process *process;

    if (!machine)
        return NULL;
    lock_take(&machine->lock);
    process = process_find_number(machine, number);
    process = process && process->shell && !process->is_over ? process_ref(process) : NULL;
    lock_release(&machine->lock);
    return process;
}

/* Returns whether the shell ended by itself, so that its state is not restored. */
static bool shell_has_ended(struct sandbox *sandbox, uint32_t number)
{
    struct record_info info;
    struct record *record;
    struct err ignored;
    char id[RECORD_ID_SIZE];
    bool has;

    (void)snprintf(id, sizeof(id), "p%u", number);
    if (sandbox_find_record(sandbox, id, &record, &ignored) < 0)
        return false;
    record_get(record, &info);
    has = info.is_over && shell_is_gone(&info.end);
    record_unref(record);
    return has;
}

static void shell_load(void *context, const char *name)
{
    struct sandbox *sandbox = context;
    struct shell_record record = { .kind = SHELL_NONE };
    bool was_there = shell_file_find(sandbox, name, &record) == 0;
    struct process *process = was_there ? shell_find_process(sandbox, record.process) : NULL;
    const struct saved saved = shell_read_saved(sandbox, name);
    enum shell_kind kind = process ? record.kind : saved.kind;
    const char *user = process ? process->record->spec->user : saved.user;
    const char *tier = process ? process->record->spec->tier : saved.tier;
    struct shell *shell;

    if (!process && was_there && shell_has_ended(sandbox, record.process)) {
        shell_file_remove(sandbox, name);
        return;
    }
    if (kind == SHELL_NONE)
        return;
    shell = shell_new(name);
    shell->kind = kind;
    (void)snprintf(shell->user, sizeof(shell->user), "%s", user ? user : "");
    (void)snprintf(shell->tier, sizeof(shell->tier), "%s", tier ? tier : "");
    shell->process = process;
    shell->is_dormant = !process;
    shell->is_changed = process;
    lock_take(&sandbox->lock);
    shell_enlist(sandbox, shell);
    lock_release(&sandbox->lock);
}

void shells_load(struct sandbox *sandbox)
{
    shell_file_each(sandbox, shell_load, sandbox);
}

void shells_free(struct sandbox *sandbox)
{
    while (sandbox->shells) {
        struct shell *shell = sandbox->shells;

        sandbox->shells = shell->next;
        shell_unref(shell);
    }
}

void shells_remove(struct sandbox *sandbox)
{
    cleanup_free struct shell **list = shells_list(sandbox);

    for (size_t i = 0; list[i]; i++) {
        shell_delist(sandbox, list[i]->name);
        shell_unref(list[i]);
    }
    shell_file_remove_all(sandbox);
}
