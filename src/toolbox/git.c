// SPDX-License-Identifier: Apache-2.0
/* git, as tools: arguments are built here and no shell sees them. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process.h"
#include "toolbox/tool_internal.h"

enum {
    LOCAL_MS = 30 * 1000,
    ASK_MS = 10 * 1000,
    OUTPUT_BYTES = 256 * 1024,
    CONFIG_BYTES = 16 * 1024,
    EXIT_NOT_FOUND = 127,
};

#define FALLBACK_NAME "Holt Agent"
#define FALLBACK_EMAIL "agent@holt.invalid"

/* Which value is which. */
enum { STATUS_REPO };
enum { DIFF_REF, DIFF_STAGED, DIFF_PATH, DIFF_REPO };
enum { LOG_N, LOG_REF, LOG_PATH, LOG_REPO };
enum { SHOW_REF, SHOW_REPO };
enum { ADD_PATHS, ADD_REPO };
enum { COMMIT_MESSAGE, COMMIT_REPO };
enum { NET_ARGS, NET_REPO };

/* --- what to run ----------------------------------------------------------------------------- */

/* Nobody is there to be asked; messages are in the language that explanations know; a repository of
 * another user of the sandbox is as good as one's own. */
static void set_environment(const struct tool_job *job, struct tool_command *ret)
{
    static const char *const always[] = {
        "GIT_TERMINAL_PROMPT=0",
        "GIT_PAGER=cat",
        "GIT_EDITOR=true",
        "GIT_MERGE_AUTOEDIT=no",
        "GIT_SSH_COMMAND=ssh -oBatchMode=yes",
        "LC_ALL=C.UTF-8",
        "GIT_CONFIG_KEY_0=safe.directory",
        "GIT_CONFIG_VALUE_0=*",
    };
    /* Looking must not write an index, nor run what a repository names. */
    static const char *const looking[] = {
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_CONFIG_KEY_1=core.fsmonitor",
        "GIT_CONFIG_VALUE_1=false",
    };

    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        tool_command_set(ret, always[i]);
    for (size_t i = 0; job->tool->is_read_only && i < ARRAY_SIZE(looking); i++)
        tool_command_set(ret, looking[i]);
    tool_command_set(ret, job->tool->is_read_only ? "GIT_CONFIG_COUNT=2" : "GIT_CONFIG_COUNT=1");
}

static void begin(const struct tool_job *job, const char *verb, size_t repo,
                  struct tool_command *ret)
{
    set_environment(job, ret);
    ret->cwd = tool_path(tool_text_at(job, repo));
    ret->timeout_ms = job->tool->is_open ? 0 : LOCAL_MS;
    tool_command_add(ret, "git");
    tool_command_add(ret, "--no-pager");
    tool_command_add(ret, verb);
}

/* A revision is never an option. False: refused. */
static bool add_ref(struct tool_job *job, size_t index, struct tool_command *ret)
{
    const char *ref = tool_text_at(job, index);

    if (ref[0] == '-') {
        tool_job_refuse(job, "'%.60s' is not a revision: it must not begin with '-'.", ref);
        return false;
    }
    if (ref[0] != '\0')
        tool_command_add(ret, ref);
    return true;
}

static void add_path(const struct tool_job *job, size_t index, struct tool_command *ret)
{
    tool_command_add(ret, "--");
    if (tool_text_at(job, index)[0] != '\0')
        tool_command_add(ret, tool_text_at(job, index));
}

static int make_status(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    (void)attempt, (void)err;
    begin(job, "status", STATUS_REPO, ret);
    tool_command_add(ret, "--porcelain");
    return 1;
}

static void add_diff_options(struct tool_command *ret)
{
    tool_command_add(ret, "--no-color");
    tool_command_add(ret, "--no-ext-diff");
    tool_command_add(ret, "--no-textconv");
}

static int make_diff(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    (void)attempt, (void)err;
    begin(job, "diff", DIFF_REPO, ret);
    add_diff_options(ret);
    if (tool_number_at(job, DIFF_STAGED))
        tool_command_add(ret, "--staged");
    if (!add_ref(job, DIFF_REF, ret))
        return 0;
    add_path(job, DIFF_PATH, ret);
    return 1;
}

static int make_log(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    cleanup_free char *count = xasprintf("--max-count=%lld", (long long)tool_number_at(job, LOG_N));

    (void)attempt, (void)err;
    begin(job, "log", LOG_REPO, ret);
    tool_command_add(ret, count);
    tool_command_add(ret, "--no-color");
    tool_command_add(ret, "--no-show-signature");
    tool_command_add(ret, "--date=iso-strict");
    tool_command_add(ret, "--format=%H  %an <%ae>  %ad  %s");
    if (!add_ref(job, LOG_REF, ret))
        return 0;
    add_path(job, LOG_PATH, ret);
    return 1;
}

static int make_show(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    (void)attempt, (void)err;
    begin(job, "show", SHOW_REPO, ret);
    add_diff_options(ret);
    tool_command_add(ret, "--no-show-signature");
    if (!add_ref(job, SHOW_REF, ret))
        return 0;
    tool_command_add(ret, "--");
    return 1;
}

static void add_texts(const struct tool_job *job, size_t index, struct tool_command *ret)
{
    const struct tool_value *value = &job->values.at[index];

    for (size_t i = 0; i < value->count; i++)
        tool_command_add(ret, value->texts[i].data);
}

static int make_add(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    (void)attempt, (void)err;
    begin(job, "add", ADD_REPO, ret);
    tool_command_add(ret, "--");
    add_texts(job, ADD_PATHS, ret);
    return 1;
}

static int make_network(struct tool_job *job, int attempt, struct tool_command *ret,
                        struct err *err)
{
    (void)attempt, (void)err;
    begin(job, job->tool->name + strlen("git_"), NET_REPO, ret);
    add_texts(job, NET_ARGS, ret);
    return 1;
}

/* --- who commits ----------------------------------------------------------------------------- */

/* Whether git knows a name and an address here. */
static int ask_identity(struct tool_job *job, bool *ret_has_name, bool *ret_has_email,
                        struct err *err)
{
    cleanup_with(tool_command_done) struct tool_command command = { .arg_count = 0 };
    cleanup_with(buf_done) struct buf answer = BUF_INIT(CONFIG_BYTES);
    int r;

    begin(job, "config", COMMIT_REPO, &command);
    command.timeout_ms = ASK_MS;
    tool_command_add(&command, "--get-regexp");
    tool_command_add(&command, "^(user|author|committer)\\.(name|email)$");
    r = tool_capture(job, &command, &answer, err);
    *ret_has_name = answer.data && strstr(answer.data, ".name ");
    *ret_has_email = answer.data && strstr(answer.data, ".email ");
    return r;
}

static int make_commit(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    const char *message = tool_text_at(job, COMMIT_MESSAGE);
    cleanup_free char *option = xasprintf("--message=%s", message);
    bool has_name = false, has_email = false;
    int r;

    (void)attempt;
    if (message[strspn(message, " \t\r\n")] == '\0') {
        tool_job_refuse(job, "the message is empty.");
        return 0;
    }
    r = ask_identity(job, &has_name, &has_email, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    begin(job, "commit", COMMIT_REPO, ret);
    tool_command_add(ret, option);
    if (!has_name) {
        tool_command_set(ret, "GIT_AUTHOR_NAME=" FALLBACK_NAME);
        tool_command_set(ret, "GIT_COMMITTER_NAME=" FALLBACK_NAME);
    }
    if (!has_email) {
        tool_command_set(ret, "GIT_AUTHOR_EMAIL=" FALLBACK_EMAIL);
        tool_command_set(ret, "GIT_COMMITTER_EMAIL=" FALLBACK_EMAIL);
    }
    job->has_fallback = !has_name || !has_email;
    return 1;
}

/* --- what is said of its end ----------------------------------------------------------------- */

static bool has_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasestr(text, *words))
            return true;
    return false;
}

static void explain(struct tool_job *job, const struct process_end *end, const char *errors,
                    struct buf *out)
{
    if (end->outcome == OUTCOME_NOT_STARTED && end->exit_code == EXIT_NOT_FOUND)
        (void)buf_add_str(out, "git is not installed in this sandbox. Install it (as with apt-get "
                               "install git), or use a template that has it.\n");
    else if (end->outcome == OUTCOME_NOT_STARTED)
        (void)buf_printf(out, "'repo' must be a directory: %.200s is not.\n",
                         tool_text_at(job, job->values.count - 1));
    else if (strstr(errors, "not a git repository"))
        (void)buf_add_str(out, "'repo' must be a directory in a repository; git init, with bash, "
                               "makes one.\n");
    else if (strstr(errors, "dubious ownership"))
        (void)buf_add_str(out, "git config --global --add safe.directory '*', with bash, lets git "
                               "use repositories of other users.\n");
}

/* That a remote address cannot be reached, in git's words, curl's and ssh's. A refused connection
 * is not among them: somebody was there to refuse it. */
static bool is_unreachable(const char *errors)
{
    static const char *const words[] = {
        "could not resolve",
        "name or service not known",
        "temporary failure in name",
        "unable to look up",
        "network is unreachable",
        "no route to host",
        "connection timed out",
        "failed to connect to",
        "couldn't connect to server",
        "cannot assign requested",
        NULL,
    };

    return has_any(errors, words) && !strstr(errors, "Connection refused");
}

static void explain_network(struct tool_job *job, const struct process_end *end, const char *errors,
                            struct buf *out)
{
    if (end->exit_code != 0 && is_unreachable(errors) && !sandbox_has_egress(job->sandbox))
        (void)buf_add_str(
            out, "This sandbox has no network: nothing outside it can be reached, so no remote "
                 "address works. Remotes that are paths inside the sandbox do, and servers inside "
                 "it on 127.0.0.1.\n");
    else
        explain(job, end, errors, out);
}

static void explain_commit(struct tool_job *job, const struct process_end *end, const char *errors,
                           struct buf *out)
{
    if (end->exit_code == 0 && job->has_fallback)
        (void)buf_add_str(
            out, "[git is not told here who commits, so what was missing is of " FALLBACK_NAME
                 " <" FALLBACK_EMAIL ">; git config user.name and user.email "
                 "say otherwise]\n");
    explain(job, end, errors, out);
}

#define RECIPE(tool, maker, explainer, nothing)                                                    \
    {                                                                                              \
        .name = (tool), .make = (maker), .explain = (explainer), .silence = (nothing),             \
        .attempts = 1, .is_failure_error = true, .text_max = OUTPUT_BYTES                          \
    }

static const struct tool_recipe recipes[] = {
    RECIPE("git_status", make_status, explain,
           "(nothing has changed: the working tree is clean)\n"),
    RECIPE("git_diff", make_diff, explain, "(no differences)\n"),
    RECIPE("git_log", make_log, explain, "(no commits)\n"),
    RECIPE("git_show", make_show, explain, "(nothing)\n"),
    RECIPE("git_add", make_add, explain, "(staged)\n"),
    RECIPE("git_commit", make_commit, explain_commit, "(committed)\n"),
    RECIPE("git_push", make_network, explain_network, "(pushed)\n"),
    RECIPE("git_clone", make_network, explain_network, "(cloned)\n"),
    RECIPE("git_fetch", make_network, explain_network, "(nothing new)\n"),
    RECIPE("git_pull", make_network, explain_network, "(pulled)\n"),
};

const struct tool_recipe *tool_git_recipe(const char *tool)
{
    for (size_t i = 0; i < ARRAY_SIZE(recipes); i++)
        if (strcmp(recipes[i].name, tool) == 0)
            return &recipes[i];
    return NULL;
}
