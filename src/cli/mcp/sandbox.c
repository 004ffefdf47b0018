// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/cp/cp.h"
#include "holt.h"

enum {
    BASENAME_MAX = 32,
    IDLE_MS = 60 * 60 * 1000, /* removes a temporary sandbox even if holt was killed */
};

/* FNV-1a, folded to 24 bits. */
static uint32_t path_hash(const char *path)
{
    uint32_t hash = 2166136261U;

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619U;
    return (hash ^ hash >> 24) & 0xffffff;
}

/* Copies the last component with "-" for characters that the name of a sandbox cannot have. */
static void basename_copy(const char *path, char ret[BASENAME_MAX + 1])
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strrchr(path, '/');

    (void)snprintf(ret, BASENAME_MAX + 1, "%s", slash && slash[1] ? slash + 1 : "root");
    for (char *next = ret; *next; next++)
        if (!strchr(good, *next))
            *next = '-';
}

int mcp_sandbox_init(struct mcp_sandbox *sandbox)
{
    const char *directory = sandbox->workspace ? sandbox->workspace : ".";
    char base[BASENAME_MAX + 1];
    int len;

    lock_init(&sandbox->lock, LOCK_BRIDGE_SANDBOX);
    if (sandbox->sandbox)
        return STATUS_OK;
    sandbox->directory = realpath(directory, NULL);
    if (!sandbox->directory)
        return report("read '%s': %s", directory, strerror(errno));
    basename_copy(sandbox->directory, base);
    len = snprintf(sandbox->name, sizeof(sandbox->name), "mcp-%s-%06x", base,
                   path_hash(sandbox->directory));
    if (sandbox->is_temporary)
        (void)snprintf(sandbox->name + len, sizeof(sandbox->name) - (size_t)len, "-%d", getpid());
    return STATUS_OK;
}

void mcp_sandbox_done(struct mcp_sandbox *sandbox)
{
    lock_destroy(&sandbox->lock);
    free(sandbox->directory);
}

const char *mcp_sandbox_name(const struct mcp_sandbox *sandbox)
{
    return sandbox->sandbox ? sandbox->sandbox : sandbox->name;
}

static bool is_code(const struct holt_error *error, const char *code)
{
    return strcmp(error->code, code) == 0;
}

/* A sandbox that another process has created meanwhile serves as well. */
static int sandbox_create(const struct mcp_sandbox *sandbox, struct holt *holt,
                          struct holt_error *error)
{
    static const char *const labels[] = { "made-by=mcp", NULL };
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);

    options.name = sandbox->name;
    options.template_name = sandbox->template;
    options.labels = labels;
    if (sandbox->is_temporary)
        options.idle_timeout_ms = IDLE_MS;
    if (holt_sandbox_create(holt, &options, HOLT_NO_DEADLINE, NULL, error) == 0) {
        report_note("created sandbox %s for %s", sandbox->name, sandbox->directory);
        return 0;
    }
    return is_code(error, "already_exists") ? 0 : -1;
}

/* Returns 1 and the state if the sandbox exists, 0 if it does not, or -1. */
static int sandbox_find(const struct mcp_sandbox *sandbox, struct holt *holt,
                        enum holt_state *ret_state, struct holt_error *error)
{
    cleanup_result struct holt_sandbox *found = NULL;

    if (holt_sandbox_get(holt, sandbox->name, HOLT_NO_DEADLINE, &found, error) < 0)
        return is_code(error, "not_found") ? 0 : -1;
    *ret_state = found->state;
    return 1;
}

/* Returns 1 if the workspace was copied into the sandbox, 0 if it was not, or -1. */
static int has_workspace(const struct mcp_sandbox *sandbox, struct holt *holt,
                         struct holt_error *error)
{
    cleanup_result struct holt_snapshot_list *list = NULL;

    if (holt_snapshot_list(holt, sandbox->name, HOLT_NO_DEADLINE, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i]->name, MCP_WORKSPACE_SNAPSHOT) == 0)
            return 1;
    return 0;
}

static int workspace_copy(const struct mcp_sandbox *sandbox, struct holt_error *error)
{
    cleanup_free char *from = xasprintf("%s/.", sandbox->directory);
    struct cp cp = {
        .from = { .text = sandbox->directory, .path = from },
        .to = { .text = "/workspace", .path = "/workspace", .sandbox = sandbox->name },
    };
    int status;

    report_note("copying %s into sandbox %s", sandbox->directory, sandbox->name);
    progress_begin(&cp.progress, sandbox->directory, 0);
    status = cp_up(&cp);
    progress_end(&cp.progress);
    if (status == STATUS_OK)
        return 0;
    *error = (struct holt_error){ .code = "internal" };
    (void)snprintf(error->message, sizeof(error->message), "cannot copy %.200s into the sandbox",
                   sandbox->directory);
    return -1;
}

static int sandbox_start(const struct mcp_sandbox *sandbox, enum holt_state state,
                         struct holt *holt, struct holt_error *error)
{
    if (state == HOLT_STATE_STOPPED)
        return holt_sandbox_start(holt, sandbox->name, HOLT_NO_DEADLINE, NULL, error);
    if (state == HOLT_STATE_PAUSED || state == HOLT_STATE_DEEP_PAUSED)
        return holt_sandbox_resume(holt, sandbox->name, HOLT_NO_DEADLINE, NULL, error);
    return 0;
}

static int workspace_fill(const struct mcp_sandbox *sandbox, enum holt_state state,
                          struct holt *holt, struct holt_error *error)
{
    int r = has_workspace(sandbox, holt, error);

    if (r != 0)
        return r < 0 ? -1 : 0;
    if (sandbox_start(sandbox, state, holt, error) < 0 || workspace_copy(sandbox, error) < 0)
        return -1;
    return holt_snapshot_create(holt, sandbox->name, MCP_WORKSPACE_SNAPSHOT, HOLT_NO_DEADLINE, NULL,
                                error);
}

/* The directory is locked: of two processes that serve it, the second must not copy over what the
 * first has changed in the sandbox since. */
static int sandbox_prepare(const struct mcp_sandbox *sandbox, struct holt *holt,
                           struct holt_error *error)
{
    cleanup_close int fd = open(sandbox->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum holt_state state = HOLT_STATE_UNKNOWN;
    int r;

    if (fd >= 0)
        (void)flock(fd, LOCK_EX);
    r = sandbox_find(sandbox, holt, &state, error);
    if (r == 0)
        r = sandbox_create(sandbox, holt, error);
    if (r < 0)
        return -1;
    return sandbox->workspace ? workspace_fill(sandbox, state, holt, error) : 0;
}

int mcp_sandbox_prepare(struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error)
{
    int r = 0;

    if (sandbox->sandbox)
        return 0;
    lock_take(&sandbox->lock);
    if (!sandbox->is_ready)
        r = sandbox_prepare(sandbox, holt, error);
    sandbox->is_ready = r == 0;
    lock_release(&sandbox->lock);
    return r;
}

bool mcp_sandbox_forget(struct mcp_sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox->is_ready = false;
    lock_release(&sandbox->lock);
    return !sandbox->sandbox;
}

void mcp_sandbox_remove(struct mcp_sandbox *sandbox, struct holt *holt)
{
    struct holt_error error;

    lock_take(&sandbox->lock); /* waits for a create in progress */
    if (sandbox->is_temporary && !sandbox->sandbox &&
        holt_sandbox_destroy(holt, sandbox->name, HOLT_NO_DEADLINE, &error) < 0 &&
        !is_code(&error, "not_found"))
        (void)report_holt_error(&error);
    lock_release(&sandbox->lock);
}
