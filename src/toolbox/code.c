// SPDX-License-Identifier: Apache-2.0
/* run_code: runs code in the code interpreter of the sandbox (templates/code-interpreter). A small
 * client in the sandbox passes the code to the server and prints what comes back; the first call
 * starts the server. The client leaves images in a directory, which is read at the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process.h"
#include "toolbox/tool_internal.h"

#define SERVER "/opt/code-interpreter/server.py"
#define CLIENT "/opt/code-interpreter/run.py"

/* Names of the server among those of a sandbox: started here, or by the E2B front end. */
#define SERVER_NAME "code"
#define START_NAME "start"

enum {
    CODE,
    CODE_LANGUAGE,
    CODE_CONTEXT,
    CODE_RESTART,
    CODE_ACTION,
    CODE_TIMEOUT,
};

enum {
    EXIT_NO_SERVER = 75,         /* of the client: nothing listens */
    CLIENT_EXTRA_MS = 20 * 1000, /* to interrupt the code, or to restart its kernel */
    IMAGES_TIMEOUT_MS = 30 * 1000,
    IMAGES_BYTES = 24 * 1024 * 1024,
};

/* A call that is repeated after the death of the daemon has the same name. */
static char *images_dir(const struct tool_job *job)
{
    return job->call_id[0] ? xasprintf("/tmp/.run_code-%.40s", job->id_hash)
                           : xasprintf("/tmp/.run_code-%" PRIx64, job->began_ns);
}

/* Finds the last server of the sandbox, whoever started it. */
static void find_server(struct tool_job *job, struct server_run *ret)
{
    struct server_run other;

    server_find(job->sandbox, SERVER_NAME, ret);
    server_find(job->sandbox, START_NAME, &other);
    if (!other.is_known || (ret->is_known && ret->started_ms > other.started_ms))
        return;
    memcpy(other.next_key, ret->next_key, sizeof(other.next_key));
    *ret = other;
}

/* Starts the server as a process of its own, which goes on after this call, unless another call has
 * just done so. Returns 1, or 0 after tool_job_set_error. */
static int start_server(struct tool_job *job, struct err *err)
{
    char *const args[] = { (char *)(uintptr_t)SERVER, NULL };
    char reason[SERVER_REASON_SIZE] = "";
    char *const env[] = { reason, NULL };
    struct server_run last;
    struct process_spec spec = { .args = args, .cwd = "/", .is_detached = true };
    struct process *process = NULL;
    struct record_info info;
    int r;

    find_server(job, &last);
    spec.key = last.next_key;
    if (last.is_known && last.end.outcome != OUTCOME_NOT_STARTED) {
        (void)server_reason(&last, reason);
        spec.env = env;
    }
    r = sandbox_exec(job->sandbox, &spec, &process, err);
    if (r < 0 && err->cause == CAUSE_PROCESS_EXISTS)
        return 1;
    if (r < 0)
        return tool_job_fail(job, r, err);
    (void)process_wait_started(process);
    record_get(process_record(process), &info);
    r = info.is_over && info.end.outcome == OUTCOME_NOT_STARTED ? 0 : 1;
    process_abandon(process);
    if (r == 0)
        tool_job_set_error(job, "This sandbox has no code interpreter. Create it from the template "
                                "code-interpreter-v1, or use bash.");
    return r;
}

static int make_code(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    cleanup_free char *dir = images_dir(job), *text = NULL;
    cleanup_json json_t *request = NULL;
    int64_t action = tool_number_at(job, CODE_ACTION);
    int r;

    if (!*tool_text_at(job, CODE) && action == 0) {
        tool_job_set_error(job, "'code' is empty.");
        return 0;
    }
    r = attempt > 0 ? start_server(job, err) : 1;
    if (r <= 0)
        return r;
    request = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:f, s:s, s:i, s:i, s:b}", "action",
        job->tool->params[CODE_ACTION].choices[action], "code", tool_text_at(job, CODE), "language",
        tool_text_at(job, CODE_LANGUAGE), "context_name", tool_text_at(job, CODE_CONTEXT),
        "restart", tool_number_at(job, CODE_RESTART) != 0, "timeout",
        (double)tool_number_at(job, CODE_TIMEOUT) / 1000, "images", dir, "images_max",
        TOOL_IMAGES_MAX, "images_bytes", IMAGES_BYTES, "waits", attempt > 0);
    text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    if (!text) {
        tool_job_set_error(job, "The code is not valid UTF-8.");
        return 0;
    }
    tool_command_add(ret, CLIENT);
    tool_command_add(ret, text);
    ret->cwd = xstrdup("/");
    ret->timeout_ms = (uint64_t)tool_number_at(job, CODE_TIMEOUT) + CLIENT_EXTRA_MS;
    return 1;
}

/* Adds the images: lines of a type and the data in base64. */
static void collect_images(struct tool_job *job)
{
    cleanup_free char *dir = images_dir(job);
    cleanup_free char *script =
        xasprintf("cd %s 2>/dev/null || exit 0; for f in *; do echo image/${f##*.}; "
                  "base64 -w0 $f; echo; done; rm -rf %s",
                  dir, dir);
    cleanup_with(tool_command_done) struct tool_command command = { .timeout_ms =
                                                                        IMAGES_TIMEOUT_MS };
    struct buf out = BUF_INIT(IMAGES_BYTES);
    struct err ignored;

    tool_command_add(&command, "/bin/sh");
    tool_command_add(&command, "-c");
    tool_command_add(&command, script);
    command.cwd = xstrdup("/");
    if (tool_capture(job, &command, &out, &ignored) == 0 && out.len > 0)
        tool_job_set_images(job, &out);
    buf_done(&out);
}

static const struct tool_recipe code_recipe = {
    .name = "run_code",
    .make = make_code,
    .finish = collect_images,
    .silence = "(no output)\n",
    .attempts = 2,
    .retry_exit = EXIT_NO_SERVER,
    .is_shell = true,
};

const struct tool_recipe *tool_code_recipe(const char *tool)
{
    return strcmp(tool, code_recipe.name) == 0 ? &code_recipe : NULL;
}
