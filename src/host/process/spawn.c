// SPDX-License-Identifier: Apache-2.0
#include "host/process/spawn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/process/process.h"
#include "wire/message.h"

#define DEFAULT_CWD "/workspace"

static const char *const default_env[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    /* Not for a named user: the guest knows its home, and LANG is its own choice, as C.UTF-8
     * makes every shell open a dozen files. */
    "LANG=C.UTF-8",
    "HOME=/root",
};

enum { USER_DEFAULTS = 1 }; /* of default_env, for a named user */

/* Returns whether two "NAME=value" strings have the same name. */
static bool env_same_name(const char *one, const char *other)
{
    size_t len = strcspn(one, "=");

    return strncmp(one, other, len) == 0 && other[len] == '=';
}

/* Adds a variable or replaces its value. */
static int env_add(struct message_spawn *spawn, const char *variable)
{
    for (size_t i = 0; i < spawn->env_count; i++) {
        if (env_same_name(spawn->env[i], variable)) {
            spawn->env[i] = variable;
            return 0;
        }
    }
    if (spawn->env_count == MESSAGE_ENV_MAX)
        return -E2BIG;
    spawn->env[spawn->env_count++] = variable;
    return 0;
}

static int env_fill(struct message_spawn *spawn, const struct process_spec *spec,
                    char *const *machine_env)
{
    int r = 0;

    for (size_t i = 0; i < (spec->user ? USER_DEFAULTS : ARRAY_SIZE(default_env)); i++)
        (void)env_add(spawn, default_env[i]);
    (void)env_add(spawn, spec->has_terminal ? "TERM=xterm-256color" : "TERM=dumb");
    for (char *const *variable = machine_env; r == 0 && variable && *variable; variable++)
        r = env_add(spawn, *variable);
    for (char *const *variable = spec->env; r == 0 && variable && *variable; variable++)
        r = env_add(spawn, *variable);
    return r;
}

int process_put_spawn(struct buf *out, uint32_t process, const struct process_spec *spec,
                      const struct spawn_place *place, struct err *err)
{
    cleanup_free struct message_spawn *spawn = xcalloc(1, sizeof(*spawn));
    int r = env_fill(spawn, spec, place->env);

    spawn->cwd = spec->cwd ? spec->cwd : DEFAULT_CWD;
    spawn->user = spec->user;
    spawn->group = spec->group;
    spawn->has_stdin = spec->has_stdin;
    spawn->has_terminal = spec->has_terminal;
    spawn->rows = spec->rows;
    spawn->columns = spec->columns;
    spawn->shell = spec->shell;
    spawn->waits_for_writers = spec->waits_for_writers;
    spawn->rlimits[spawn->rlimit_count++] = place->files;
    spawn->args = (const char *const *)spec->args;
    while (spawn->args[spawn->arg_count])
        spawn->arg_count++;
    if (r == 0)
        r = place->is_cell ? message_put_cell_spawn(out, process, spawn)
                           : message_put_spawn(out, process, 1, spawn);
    if (r < 0)
        return err_set(err, ERR_EXHAUSTED, "the arguments and environment are too large");
    return 0;
}

void process_explain_failure(const struct message_failed *failed, char *into, size_t size)
{
    static const char *const what[] = {
        [FAILED_SETUP] = "the process could not be set up",
        [FAILED_CWD] = "the working directory cannot be entered",
        [FAILED_EXEC] = "the command cannot be executed",
        [FAILED_USER] = "the user cannot be looked up",
    };
    bool is_missing = failed->errnum == ENOENT || failed->errnum == ENOTDIR;

    if (failed->step == FAILED_SETUP && failed->errnum == EPROTO)
        (void)snprintf(
            into, size,
            "the sandbox runs an earlier version of Holt, which accepts 4,096 arguments; "
            "stop and start it");
    else if (failed->step == FAILED_EXEC && failed->errnum == E2BIG)
        (void)snprintf(into, size,
                       "the arguments and environment are longer than the kernel accepts: 128 KiB "
                       "for one of them, and a quarter of the stack limit for all");
    else if (failed->step == FAILED_EXEC && is_missing)
        (void)snprintf(into, size, "command not found");
    else if (failed->step == FAILED_CWD && failed->errnum == ENOENT)
        (void)snprintf(into, size, "the working directory does not exist");
    else if (failed->step == FAILED_USER && failed->errnum == ENOENT)
        (void)snprintf(into, size, "no such user or group in the sandbox");
    else if (failed->step == FAILED_SETUP && failed->errnum == EAGAIN)
        (void)snprintf(into, size, "out of processes: the limit of the sandbox or host is reached");
    else if (failed->step == FAILED_SETUP && failed->errnum == EINTR)
        (void)snprintf(into, size,
                       "a process in the sandbox kept it stopped (SIGSTOP) before its command ran");
    else if (failed->step == FAILED_SETUP && failed->errnum == ETIMEDOUT)
        (void)snprintf(into, size, "its command could not be executed within 30 s");
    else if (failed->step == FAILED_SETUP && failed->errnum == ENOMEM)
        (void)snprintf(into, size, "out of memory: the limit of the sandbox or host is reached");
    else
        (void)snprintf(into, size, "%s: %.160s", what[failed->step], failed->text);
}
