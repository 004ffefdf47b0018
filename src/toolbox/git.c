// SPDX-License-Identifier: Apache-2.0
/* The git tools. They run git directly, without a shell. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process.h"
#include "toolbox/tool_internal.h"

enum {
    LOCAL_MS = 30 * 1000,
    IDENTITY_MS = 10 * 1000,
    OUTPUT_BYTES = 256 * 1024,
    CONFIG_BYTES = 16 * 1024,
    FILTER_BYTES = 64 * 1024,
    FILTERS_MAX = 512,
    PIECE_BYTES = 4096, /* a buffer with less space left may have lost output */
    EXIT_NOT_FOUND = 127,
};

#define FALLBACK_NAME "Holt Agent"
#define FALLBACK_EMAIL "agent@holt.invalid"

/* Indices of the parameters. */
enum { STATUS_REPO };
enum { DIFF_REF, DIFF_STAGED, DIFF_PATH, DIFF_REPO };
enum { LOG_N, LOG_REF, LOG_PATH, LOG_REPO };
enum { SHOW_REF, SHOW_REPO };
enum { ADD_PATHS, ADD_REPO };
enum { COMMIT_MESSAGE, COMMIT_REPO };
enum { NET_ARGS, NET_REPO };

/* --- commands -------------------------------------------------------------------------------- */

/* Disables prompts, sets the language of the messages that git_explain searches, and allows
 * repositories of other users of the sandbox. */
static void git_set_environment(const struct tool_job *job, struct tool_command *ret)
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
    /* A read-only tool must not write the index or run programs that a repository names. Hooks and
     * the merge drivers of a remerge diff are such programs, and so is everything that fetches the
     * missing objects of a partial clone. */
    static const char *const read_only[] = {
        "GIT_OPTIONAL_LOCKS=0",         "GIT_NO_LAZY_FETCH=1",
        "GIT_ALLOW_PROTOCOL=none",      "GIT_CONFIG_KEY_1=core.fsmonitor",
        "GIT_CONFIG_VALUE_1=false",     "GIT_CONFIG_KEY_2=core.hooksPath",
        "GIT_CONFIG_VALUE_2=/dev/null", "GIT_CONFIG_KEY_3=log.diffMerges",
        "GIT_CONFIG_VALUE_3=separate",
    };

    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        tool_command_set(ret, always[i]);
    for (size_t i = 0; job->tool->is_read_only && i < ARRAY_SIZE(read_only); i++)
        tool_command_set(ret, read_only[i]);
    tool_command_set(ret, job->tool->is_read_only ? "GIT_CONFIG_COUNT=4" : "GIT_CONFIG_COUNT=1");
}

static void git_begin_options(const struct tool_job *job, size_t repo, struct tool_command *ret)
{
    git_set_environment(job, ret);
    ret->cwd = tool_path(tool_text_at(job, repo));
    ret->timeout_ms = job->tool->is_open ? 0 : LOCAL_MS;
    tool_command_add(ret, "git");
    tool_command_add(ret, "--no-pager");
}

static void git_begin(const struct tool_job *job, const char *verb, size_t repo,
                      struct tool_command *ret)
{
    git_begin_options(job, repo, ret);
    tool_command_add(ret, verb);
}

/* Adds options that set each of these keys, one per line, to nothing. Returns false when there are
 * too many. A key may contain '=', hence not -c. */
static bool git_add_cleared(char *keys, struct tool_command *ret)
{
    char *rest = NULL;
    int count = 0;

    tool_command_set(ret, "HOLT_NOTHING=");
    for (char *key = strtok_r(keys, "\n", &rest); key; key = strtok_r(NULL, "\n", &rest)) {
        cleanup_free char *option = xasprintf("--config-env=%s=HOLT_NOTHING", key);

        tool_command_add(ret, option);
        if (++count > FILTERS_MAX)
            return false;
    }
    return true;
}

/* Disables all filters that git is configured with. Returns 1, 0 after tool_job_set_error, or
 * negative with err set. */
static int git_clear_filters(struct tool_job *job, size_t repo, struct tool_command *ret,
                             struct err *err)
{
    cleanup_with(tool_command_done) struct tool_command command = { .arg_count = 0 };
    cleanup_with(buf_done) struct buf keys = BUF_INIT(FILTER_BYTES);
    int r;

    git_begin(job, "config", repo, &command);
    tool_command_add(&command, "--name-only");
    tool_command_add(&command, "--get-regexp");
    tool_command_add(&command, "^filter\\.");
    r = tool_capture(job, &command, &keys, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    if (keys.len + PIECE_BYTES > FILTER_BYTES || (keys.data && !git_add_cleared(keys.data, ret))) {
        tool_job_set_error(job, "This repository configures too many filters for a read-only "
                                "token.");
        return 0;
    }
    return 1;
}

/* Begins a command that compares the working tree. git runs filters for that, of the repository and
 * of its submodules: a read-only client must not cause it to. */
static int git_begin_compare(struct tool_job *job, const char *verb, size_t repo,
                             struct tool_command *ret, struct err *err)
{
    int r = 1;

    git_begin_options(job, repo, ret);
    if (job->is_read_only)
        r = git_clear_filters(job, repo, ret, err);
    tool_command_add(ret, verb);
    if (job->is_read_only)
        tool_command_add(ret, "--ignore-submodules=dirty");
    return r;
}

/* Adds a revision; refuses one that git would take for an option and returns false. */
static bool git_add_ref(struct tool_job *job, size_t index, struct tool_command *ret)
{
    const char *ref = tool_text_at(job, index);

    if (ref[0] == '-') {
        tool_job_set_error(job, "'%.60s' is not a revision: it must not start with '-'.", ref);
        return false;
    }
    if (ref[0] != '\0')
        tool_command_add(ret, ref);
    return true;
}

static void git_add_path(const struct tool_job *job, size_t index, struct tool_command *ret)
{
    tool_command_add(ret, "--");
    if (tool_text_at(job, index)[0] != '\0')
        tool_command_add(ret, tool_text_at(job, index));
}

static int git_make_status(struct tool_job *job, int attempt, struct tool_command *ret,
                           struct err *err)
{
    int r = git_begin_compare(job, "status", STATUS_REPO, ret, err);

    (void)attempt;
    tool_command_add(ret, "--porcelain");
    return r;
}

static void git_add_diff_options(struct tool_command *ret)
{
    tool_command_add(ret, "--no-color");
    tool_command_add(ret, "--no-ext-diff");
    tool_command_add(ret, "--no-textconv");
    tool_command_add(ret, "--submodule=short");
}

static int git_make_diff(struct tool_job *job, int attempt, struct tool_command *ret,
                         struct err *err)
{
    int r = git_begin_compare(job, "diff", DIFF_REPO, ret, err);

    (void)attempt;
    if (r <= 0)
        return r;
    git_add_diff_options(ret);
    if (tool_number_at(job, DIFF_STAGED))
        tool_command_add(ret, "--staged");
    if (!git_add_ref(job, DIFF_REF, ret))
        return 0;
    git_add_path(job, DIFF_PATH, ret);
    return 1;
}

static int git_make_log(struct tool_job *job, int attempt, struct tool_command *ret,
                        struct err *err)
{
    cleanup_free char *count = xasprintf("--max-count=%lld", (long long)tool_number_at(job, LOG_N));

    (void)attempt, (void)err;
    git_begin(job, "log", LOG_REPO, ret);
    tool_command_add(ret, count);
    tool_command_add(ret, "--no-color");
    tool_command_add(ret, "--no-show-signature");
    tool_command_add(ret, "--date=iso-strict");
    tool_command_add(ret, "--format=%H  %an <%ae>  %ad  %s");
    if (!git_add_ref(job, LOG_REF, ret))
        return 0;
    git_add_path(job, LOG_PATH, ret);
    return 1;
}

static int git_make_show(struct tool_job *job, int attempt, struct tool_command *ret,
                         struct err *err)
{
    (void)attempt, (void)err;
    git_begin(job, "show", SHOW_REPO, ret);
    git_add_diff_options(ret);
    tool_command_add(ret, "--no-show-signature");
    tool_command_add(ret, "--format=medium"); /* the configured one may verify signatures */
    if (!git_add_ref(job, SHOW_REF, ret))
        return 0;
    tool_command_add(ret, "--");
    return 1;
}

static void git_add_texts(const struct tool_job *job, size_t index, struct tool_command *ret)
{
    const struct tool_value *value = &job->values.at[index];

    for (size_t i = 0; i < value->count; i++)
        tool_command_add(ret, value->texts[i].data);
}

static int git_make_add(struct tool_job *job, int attempt, struct tool_command *ret,
                        struct err *err)
{
    (void)attempt, (void)err;
    git_begin(job, "add", ADD_REPO, ret);
    tool_command_add(ret, "--");
    git_add_texts(job, ADD_PATHS, ret);
    return 1;
}

static int git_make_network(struct tool_job *job, int attempt, struct tool_command *ret,
                            struct err *err)
{
    (void)attempt, (void)err;
    git_begin(job, job->tool->name + strlen("git_"), NET_REPO, ret);
    git_add_texts(job, NET_ARGS, ret);
    return 1;
}

/* --- identity of a commit -------------------------------------------------------------------- */

/* Reads whether git is configured with a name and an e-mail address. */
static int git_read_identity(struct tool_job *job, bool *ret_has_name, bool *ret_has_email,
                             struct err *err)
{
    cleanup_with(tool_command_done) struct tool_command command = { .arg_count = 0 };
    cleanup_with(buf_done) struct buf answer = BUF_INIT(CONFIG_BYTES);
    int r;

    git_begin(job, "config", COMMIT_REPO, &command);
    command.timeout_ms = IDENTITY_MS;
    tool_command_add(&command, "--get-regexp");
    tool_command_add(&command, "^(user|author|committer)\\.(name|email)$");
    r = tool_capture(job, &command, &answer, err);
    *ret_has_name = answer.data && strstr(answer.data, ".name ");
    *ret_has_email = answer.data && strstr(answer.data, ".email ");
    return r;
}

static int git_make_commit(struct tool_job *job, int attempt, struct tool_command *ret,
                           struct err *err)
{
    const char *message = tool_text_at(job, COMMIT_MESSAGE);
    cleanup_free char *option = xasprintf("--message=%s", message);
    bool has_name = false, has_email = false;
    int r;

    (void)attempt;
    if (message[strspn(message, " \t\r\n")] == '\0') {
        tool_job_set_error(job, "'message' is empty.");
        return 0;
    }
    r = git_read_identity(job, &has_name, &has_email, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    git_begin(job, "commit", COMMIT_REPO, ret);
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

/* --- explanations for the model -------------------------------------------------------------- */

static bool has_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasestr(text, *words))
            return true;
    return false;
}

static void git_explain(struct tool_job *job, const struct process_end *end, const char *errors,
                        struct buf *out)
{
    if (end->outcome == OUTCOME_NOT_STARTED && end->exit_code == EXIT_NOT_FOUND)
        (void)buf_add_str(out, "git is not installed in this sandbox. Install it (for example with "
                               "apt-get install git), or use a template that has it.\n");
    else if (end->outcome == OUTCOME_NOT_STARTED)
        (void)buf_printf(out, "'repo' must be a directory; %.200s is not.\n",
                         tool_text_at(job, job->values.count - 1));
    else if (strstr(errors, "not a git repository"))
        (void)buf_add_str(out, "'repo' must be a directory in a repository; to create one, run git "
                               "init with bash.\n");
    else if (strstr(errors, "dubious ownership"))
        (void)buf_add_str(out, "To use repositories of other users, run git config --global --add "
                               "safe.directory '*' with bash.\n");
}

/* Recognizes the messages of git, curl and ssh for an unreachable address. A refused connection is
 * not among them: the address was reached. */
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

static void git_explain_network(struct tool_job *job, const struct process_end *end,
                                const char *errors, struct buf *out)
{
    if (end->exit_code != 0 && is_unreachable(errors) && !sandbox_has_egress(job->sandbox))
        (void)buf_add_str(
            out,
            "This sandbox has no network, so no address outside it can be reached. Remotes that "
            "are paths inside the sandbox work, and so do servers inside it on 127.0.0.1.\n");
    else
        git_explain(job, end, errors, out);
}

static void git_explain_commit(struct tool_job *job, const struct process_end *end,
                               const char *errors, struct buf *out)
{
    if (end->exit_code == 0 && job->has_fallback)
        (void)buf_add_str(
            out, "[the identity of the committer is not configured; this commit uses " FALLBACK_NAME
                 " <" FALLBACK_EMAIL ">. To change it, set user.name and user.email with "
                 "git config]\n");
    git_explain(job, end, errors, out);
}

#define RECIPE(tool, maker, explainer, nothing)                                                    \
    {                                                                                              \
        .name = (tool), .make = (maker), .explain = (explainer), .silence = (nothing),             \
        .attempts = 1, .is_failure_error = true, .text_max = OUTPUT_BYTES                          \
    }

static const struct tool_recipe recipes[] = {
    RECIPE("git_status", git_make_status, git_explain, "(no changes: the working tree is clean)\n"),
    RECIPE("git_diff", git_make_diff, git_explain, "(no differences)\n"),
    RECIPE("git_log", git_make_log, git_explain, "(no commits)\n"),
    RECIPE("git_show", git_make_show, git_explain, "(no output)\n"),
    RECIPE("git_add", git_make_add, git_explain, "(staged)\n"),
    RECIPE("git_commit", git_make_commit, git_explain_commit, "(committed)\n"),
    RECIPE("git_push", git_make_network, git_explain_network, "(pushed)\n"),
    RECIPE("git_clone", git_make_network, git_explain_network, "(cloned)\n"),
    RECIPE("git_fetch", git_make_network, git_explain_network, "(nothing new)\n"),
    RECIPE("git_pull", git_make_network, git_explain_network, "(pulled)\n"),
};

const struct tool_recipe *tool_git_recipe(const char *tool)
{
    for (size_t i = 0; i < ARRAY_SIZE(recipes); i++)
        if (strcmp(recipes[i].name, tool) == 0)
            return &recipes[i];
    return NULL;
}
