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

/* Each prints a script that makes a new shell like this one. Assignments that a shell does not
 * allow, as that of its own version, fail there without harm. Options come last: with some of them
 * on, such a failure would end the new shell. The trap that commands come by stays as it is: bash
 * does not survive a change of the one it is in. */
static const char bash_script[] = "\\builtin shopt -p || \\:\n"
                                  "\\builtin echo '\\unalias -a'\n"
                                  "\\builtin declare -p\n"
                                  "\\builtin declare -f\n"
                                  "\\builtin alias -p\n"
                                  "\\builtin umask -p\n"
                                  "\\builtin trap -p {0..27} 29 30 31 DEBUG ERR RETURN || \\:\n"
                                  "\\builtin printf '\\\\builtin cd -- %q\\n' \"$PWD\"\n"
                                  "\\builtin set +o\n";

/* Functions cannot be listed. */
static const char sh_script[] = "set\n"
                                "export -p\n"
                                "readonly -p\n"
                                "alias | while read -r line; do echo \"alias $line\"; done\n"
                                "echo \"umask $(umask)\"\n"
                                "trap\n"
                                "echo 'cd -- \"$PWD\"'\n"
                                "set +o\n";

/* All shells, referenced, for the caller to give back; NULL-terminated. */
static struct shell **take_all(struct sandbox *sandbox)
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

static bool has_shells(struct sandbox *sandbox)
{
    bool has;

    lock_take(&sandbox->lock);
    has = sandbox->shells;
    lock_release(&sandbox->lock);
    return has;
}

/* Whether it may differ from what is written down: it had a command, or something was typed. */
static bool is_changed(struct sandbox *sandbox, struct shell *shell, uint64_t *ret_input)
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

static void remember(struct sandbox *sandbox, struct shell *shell)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);
    uint64_t input;

    if (!is_changed(sandbox, shell, &input))
        return;
    (void)buf_printf(&state, "# %s\n", shell_kind_name(shell->kind));
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

void shells_remember(struct sandbox *sandbox)
{
    cleanup_free struct shell **list = NULL;

    if (!has_shells(sandbox) || sandbox->info.state != SANDBOX_ACTIVE)
        return;
    list = take_all(sandbox);
    for (size_t i = 0; list[i]; i++) {
        remember(sandbox, list[i]);
        shell_unref(list[i]);
    }
}

void shells_keep(struct sandbox *sandbox, const char *snapshot)
{
    cleanup_free struct shell **list = NULL;

    if (!has_shells(sandbox))
        return;
    list = take_all(sandbox);
    for (size_t i = 0; list[i]; i++) {
        (void)shell_file_keep(sandbox, list[i]->name, snapshot);
        shell_unref(list[i]);
    }
}

struct walk {
    struct sandbox *sandbox;
    const char *snapshot;
};

static void drop_one(void *context, const char *name)
{
    const struct walk *walk = context;

    shell_file_drop(walk->sandbox, name, walk->snapshot);
}

void shells_drop(struct sandbox *sandbox, const char *snapshot)
{
    struct walk walk = { sandbox, snapshot };

    shell_file_each(sandbox, drop_one, &walk);
}

/* The kind that the remembered state is for; SHELL_NONE: nothing is remembered. */
static enum shell_kind remembered_kind(struct sandbox *sandbox, const char *name)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);

    if (shell_file_read_now(sandbox, name, &state) < 0 || !state.data)
        return SHELL_NONE;
    return strncmp(state.data, "# sh\n", 5) == 0 ? SHELL_SH : SHELL_BASH;
}

/* Locked. Its process is none that could be used; the next begins with what is remembered. Returns
 * the process for the caller to let go. */
static struct process *put_to_sleep(struct shell *shell, enum shell_kind kind)
{
    shell->is_dormant = kind != SHELL_NONE;
    if (shell->is_dormant)
        shell->kind = kind;
    shell->is_changed = false;
    shell->state_input = 0;
    return TAKE_PTR(shell->process);
}

void shells_sleep(struct sandbox *sandbox)
{
    cleanup_free struct shell **list = NULL;

    if (!has_shells(sandbox))
        return;
    list = take_all(sandbox);
    for (size_t i = 0; list[i]; i++) {
        enum shell_kind kind = remembered_kind(sandbox, list[i]->name);
        struct process *process;

        lock_take(&sandbox->lock);
        process = put_to_sleep(list[i], kind);
        lock_release(&sandbox->lock);
        process_unref(process);
        shell_unref(list[i]);
    }
}

static void unlist(struct sandbox *sandbox, const char *name)
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

static void return_one(void *context, const char *name)
{
    const struct walk *walk = context;
    struct sandbox *sandbox = walk->sandbox;
    struct process *process;
    struct shell *shell;
    enum shell_kind kind;

    if (shell_file_return(sandbox, name, walk->snapshot) < 0) {
        shell_file_forget(sandbox, name);
        unlist(sandbox, name);
        return;
    }
    kind = remembered_kind(sandbox, name);
    lock_take(&sandbox->lock);
    shell = shell_find(sandbox, name);
    if (!shell) {
        shell = shell_new(name);
        shell_enlist(sandbox, shell);
    }
    process = put_to_sleep(shell, kind);
    lock_release(&sandbox->lock);
    process_unref(process);
}

void shells_return(struct sandbox *sandbox, const char *snapshot)
{
    struct walk walk = { sandbox, snapshot };

    shell_file_each(sandbox, return_one, &walk);
}

/* --- over a restart of the daemon ------------------------------------------------------------ */

/* The process of this number, if it is a shell that goes on. */
static struct process *find_process(struct sandbox *sandbox, uint32_t number)
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

/* Whether the shell ended by itself, and there is nothing to go on from. */
static bool has_ended(struct sandbox *sandbox, uint32_t number)
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

static void load_one(void *context, const char *name)
{
    struct sandbox *sandbox = context;
    struct shell_record record = { .kind = SHELL_NONE };
    bool was_there = shell_file_find(sandbox, name, &record) == 0;
    struct process *process = was_there ? find_process(sandbox, record.process) : NULL;
    enum shell_kind kind = process ? record.kind : remembered_kind(sandbox, name);
    struct shell *shell;

    if (!process && was_there && has_ended(sandbox, record.process)) {
        shell_file_forget(sandbox, name);
        return;
    }
    if (kind == SHELL_NONE)
        return;
    shell = shell_new(name);
    shell->kind = kind;
    shell->process = process;
    shell->is_dormant = !process;
    shell->is_changed = process;
    lock_take(&sandbox->lock);
    shell_enlist(sandbox, shell);
    lock_release(&sandbox->lock);
}

void shells_load(struct sandbox *sandbox)
{
    shell_file_each(sandbox, load_one, sandbox);
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
    cleanup_free struct shell **list = take_all(sandbox);

    for (size_t i = 0; list[i]; i++) {
        unlist(sandbox, list[i]->name);
        shell_unref(list[i]);
    }
    shell_file_remove_all(sandbox);
}
