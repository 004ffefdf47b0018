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
#include "base/json.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/cp/cp.h"
#include "holt.h"

enum {
    BASENAME_MAX = 32,
    IDLE_MS = 60 * 60 * 1000, /* after which a temporary one goes, whatever became of us */
};

/* FNV-1a, folded to 24 bits. */
static uint32_t path_hash(const char *path)
{
    uint32_t hash = 2166136261U;

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619U;
    return (hash ^ hash >> 24) & 0xffffff;
}

/* What the name of a sandbox may have. */
static void basename_take(const char *path, char ret[BASENAME_MAX + 1])
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
    basename_take(sandbox->directory, base);
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

static json_t *name_json(const struct mcp_sandbox *sandbox)
{
    return json_pack("{s:s}", "sandboxId", sandbox->name);
}

/* Made by somebody else meanwhile is as good as found. */
static int make(const struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error)
{
    json_t *request = json_pack("{s:s, s:s*, s:{s:s}}", "name", sandbox->name, "template",
                                sandbox->template, "labels", "made-by", "mcp");

    if (sandbox->is_temporary)
        (void)json_object_set_new(request, "idleTimeoutMs", json_u64(IDLE_MS));
    if (call_try(holt, "holt.v1.SandboxService/Create", request, NULL, error) == 0) {
        report_note("sandbox %s was made for %s", sandbox->name, sandbox->directory);
        return 0;
    }
    return is_code(error, "already_exists") ? 0 : -1;
}

/* 1 when it is there, 0 when it is not, or -1. */
static int find(const struct mcp_sandbox *sandbox, struct holt *holt, char ret_state[32],
                struct holt_error *error)
{
    cleanup_json json_t *reply = NULL;

    if (call_try(holt, "holt.v1.SandboxService/Get", name_json(sandbox), &reply, error) < 0)
        return is_code(error, "not_found") ? 0 : -1;
    (void)snprintf(ret_state, 32, "%s", call_text(json_object_get(reply, "sandbox"), "state"));
    return 1;
}

/* 1 when the workspace is in it, 0 when it is not, or -1. */
static int has_workspace(const struct mcp_sandbox *sandbox, struct holt *holt,
                         struct holt_error *error)
{
    cleanup_json json_t *reply = NULL;
    const json_t *list;

    if (call_try(holt, "holt.v1.SnapshotService/List", name_json(sandbox), &reply, error) < 0)
        return -1;
    list = json_object_get(reply, "snapshots");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(call_text(json_array_get(list, i), "name"), MCP_WORKSPACE_SNAPSHOT) == 0)
            return 1;
    return 0;
}

static int copy(const struct mcp_sandbox *sandbox, struct holt_error *error)
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
    (void)snprintf(error->message, sizeof(error->message),
                   "%.200s could not be copied into the sandbox", sandbox->directory);
    return -1;
}

static int wake(const struct mcp_sandbox *sandbox, const char *state, struct holt *holt,
                struct holt_error *error)
{
    if (strcmp(state, "stopped") == 0)
        return call_try(holt, "holt.v1.SandboxService/Start", name_json(sandbox), NULL, error);
    if (strcmp(state, "paused") == 0)
        return call_try(holt, "holt.v1.SandboxService/Resume", name_json(sandbox), NULL, error);
    return 0;
}

static int fill(const struct mcp_sandbox *sandbox, const char *state, struct holt *holt,
                struct holt_error *error)
{
    json_t *request;
    int r = has_workspace(sandbox, holt, error);

    if (r != 0)
        return r < 0 ? -1 : 0;
    if (wake(sandbox, state, holt, error) < 0 || copy(sandbox, error) < 0)
        return -1;
    request = name_json(sandbox);
    (void)json_object_set_new(request, "name", json_string(MCP_WORKSPACE_SNAPSHOT));
    return call_try(holt, "holt.v1.SnapshotService/Create", request, NULL, error);
}

/* Two that serve the same directory must not copy into one sandbox at a time, least of all the
 * second over what the first has done there since; so the directory is locked. */
static int prepare(const struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error)
{
    cleanup_close int fd = open(sandbox->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char state[32] = "";
    int r;

    if (fd >= 0)
        (void)flock(fd, LOCK_EX);
    r = find(sandbox, holt, state, error);
    if (r == 0)
        r = make(sandbox, holt, error);
    if (r < 0)
        return -1;
    return sandbox->workspace ? fill(sandbox, state, holt, error) : 0;
}

int mcp_sandbox_prepare(struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error)
{
    int r = 0;

    if (sandbox->sandbox)
        return 0;
    lock_take(&sandbox->lock);
    if (!sandbox->is_ready)
        r = prepare(sandbox, holt, error);
    sandbox->is_ready = r == 0;
    lock_release(&sandbox->lock);
    return r;
}

void mcp_sandbox_remove(struct mcp_sandbox *sandbox, struct holt *holt)
{
    struct holt_error error;

    lock_take(&sandbox->lock); /* one that is being made is made first */
    if (sandbox->is_temporary && !sandbox->sandbox &&
        call_try(holt, "holt.v1.SandboxService/Destroy", name_json(sandbox), NULL, &error) < 0 &&
        !is_code(&error, "not_found"))
        (void)report_holt_error(&error);
    lock_release(&sandbox->lock);
}
