// SPDX-License-Identifier: Apache-2.0
#include "mcp/workspace.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "mcp/session.h"

enum { DIGEST_SIZE = 2 * SHA256_DIGEST_LENGTH + 1, NAME_DIGITS = 16, NAME_SIZE = 32 };

/* Another request may resume it first; then it is active. */
int mcp_sandbox_wake(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    int r = 0;

    sandbox_get_info(sandbox, false, &info);
    if (info.state == SANDBOX_STOPPED)
        r = sandbox_start(sandbox, err);
    else if (info.state == SANDBOX_PAUSED || info.state == SANDBOX_PAUSING ||
             info.state == SANDBOX_DEEP_PAUSED)
        r = sandbox_resume(sandbox, err);
    return r < 0 && err->cause == CAUSE_INVALID_STATE ? 0 : r;
}

/* The name is a hash, so it tells nothing about the token and nobody else can take it. */
static void name_make(const struct mcp_workspace *workspace, char ret_digest[DIGEST_SIZE],
                      char ret_name[NAME_SIZE])
{
    char token[MCP_OWNER_BYTES * 2 + 1];
    unsigned char hash[SHA256_DIGEST_LENGTH];
    cleanup_free char *text = NULL;

    hex_encode(workspace->token, MCP_OWNER_BYTES, token);
    text = xasprintf("%s %s %s %s", workspace->caller->owner, token,
                     workspace->template ? workspace->template : "",
                     workspace->name ? workspace->name : "");
    (void)SHA256((const unsigned char *)text, strlen(text), hash);
    hex_encode(hash, sizeof(hash), ret_digest);
    (void)snprintf(ret_name, NAME_SIZE, "mcp-%.*s", NAME_DIGITS, ret_digest);
}

/* The key makes two first calls at the same time get the same sandbox. The idle timeout removes one
 * whose client is gone for good. */
static int workspace_make(const struct mcp_workspace *workspace, const char *digest,
                          const char *name, struct sandbox **ret, struct err *err)
{
    const struct label label = { .key = "made-by", .value = "mcp" };
    const struct sandbox_spec spec = {
        .caller = workspace->caller,
        .name = name,
        .template = workspace->template,
        .labels = &label,
        .label_count = 1,
        .idle_timeout_ms = MCP_IDLE_MS,
        .idle_action = ACTION_KILL,
        .key = name,
        .digest = digest,
    };
    bool is_joined;

    return sandbox_create_once(workspace->host, &spec, ret, &is_joined, err);
}

int mcp_workspace_sandbox(const struct mcp_workspace *workspace, bool may_make,
                          struct sandbox **ret, struct err *err)
{
    char digest[DIGEST_SIZE], name[NAME_SIZE];
    int r;

    if (workspace->sandbox)
        return sandbox_find(workspace->host, workspace->caller, workspace->sandbox, ret, err);
    name_make(workspace, digest, name);
    if (may_make)
        return workspace_make(workspace, digest, name, ret, err);
    r = sandbox_find(workspace->host, workspace->caller, name, ret, err);
    return r < 0 && err->kind == ERR_NOT_FOUND
               ? err_set(err, ERR_DENIED,
                         "a read-only client cannot create a sandbox: name one, as "
                         "/mcp?sandbox=ID or in the parameter 'sandbox'")
               : r;
}

enum net_mode mcp_workspace_network(const struct mcp_workspace *workspace)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct err ignored;

    return mcp_workspace_sandbox(workspace, false, &sandbox, &ignored) == 0 &&
                   sandbox_network_policy(sandbox, &policy, &ignored) == 0
               ? net_policy_mode(&policy)
               : network_default_mode(workspace->host, workspace->caller, workspace->template);
}
