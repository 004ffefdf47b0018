// SPDX-License-Identifier: Apache-2.0
/* holt agent run: an agent works on a copy of a directory; its changes are taken, or not. */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/agent/options.h"
#include "cli/agent/repo.h"
#include "cli/agent/review.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "cli/run/input.h"
#include "holt.h"

enum { INSIDE_MAX = 256, IDLE_MS = 24 * 3600 * 1000 };

#define BEFORE "agent-start"
#define AFTER "agent-end"

struct run_agent_options {
    struct agent_options agent;
    const char *repo;
    const char *patch; /* file; "-": stdout */
    bool takes, discards, keeps;
};

struct job {
    struct run_agent_options *options;
    struct holt *holt;
    const struct holt_sandbox *sandbox;
    struct repo repo;
    struct repo_changes changes;
    char inside[INSIDE_MAX];
    bool must_keep; /* the sandbox has changes that were neither taken nor discarded */
};

static void job_done(struct job *job)
{
    repo_done(&job->repo);
    repo_changes_done(&job->changes);
}

static void options_done(struct run_agent_options *options)
{
    agent_options_done(&options->agent);
}

/* Chooses where the directory is in the sandbox: a name that no patch has to quote. */
static void inside_set(struct job *job)
{
    cleanup_free char *real = job->options->repo ? realpath(job->options->repo, NULL) : NULL;
    const char *slash = real ? strrchr(real, '/') : NULL, *name = slash ? slash + 1 : "";
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    bool is_plain = *name && *name != '.' && !name[strspn(name, letters)] && strlen(name) < 200;

    (void)snprintf(job->inside, sizeof(job->inside), "/workspace/%s", is_plain ? name : "repo");
    job->repo.inside = job->inside;
}

static int snapshot_make(struct job *job, const char *name)
{
    struct holt_error error;

    if (holt_snapshot_create(job->holt, job->sandbox->id, name, HOLT_NO_DEADLINE, NULL, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

/* Copies the directory into the sandbox. */
static int repo_bring(struct job *job)
{
    struct holt_error error;
    int status;

    if (holt_file_mkdir(job->holt, job->sandbox->id, job->inside, HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    status = repo_push(&job->repo, job->holt, job->sandbox->id);
    return status == STATUS_OK ? snapshot_make(job, BEFORE) : status;
}

static bool has_terminal(const struct run_options *options)
{
    if (options->tty != TTY_AUTO)
        return options->tty == TTY_ALWAYS;
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Runs the command of the type in the directory, with the words of the user. */
static int command_run_in(struct job *job, char **words)
{
    struct run_options *run = &job->options->agent.run;
    const struct holt_agent *agent = job->sandbox->agent;
    const char *text = has_terminal(run) ? agent->command : agent->task;
    cleanup_with(words_done) struct words args = { .count = 0 };
    struct run_request request = { .command = &command_agent_run,
                                   .sandbox = job->sandbox->id,
                                   .options = run,
                                   .has_stdin = true };
    int status;

    words_add(&args, "/bin/sh");
    words_add(&args, "-c");
    words_add(&args, text);
    words_add(&args, agent->type);
    for (; *words; words++)
        words_add(&args, *words);
    agent_env_add(agent, &run->env);
    if (!run->workdir && job->options->repo)
        run->workdir = job->inside;
    request.args = args.items;
    status = run_follow(&request);
    run_input_stop();
    return status;
}

/* Ends every process of the sandbox and keeps a snapshot: what is shown is what is taken. */
static int agent_end(struct job *job)
{
    struct holt_error error;
    int status = snapshot_make(job, AFTER);

    if (status != STATUS_OK)
        return status;
    if (holt_rollback(job->holt, job->sandbox->id, AFTER, false, HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

static int patch_write(struct job *job, FILE *out, bool is_safe)
{
    struct review review = {
        .holt = job->holt,
        .sandbox = job->sandbox->id,
        .from = BEFORE,
        .to = AFTER,
        .repo = &job->repo,
        .patch = out,
        .is_safe = is_safe,
    };

    return review_run(&review);
}

static int changes_collect(struct job *job)
{
    struct review review = {
        .holt = job->holt,
        .sandbox = job->sandbox->id,
        .from = BEFORE,
        .to = AFTER,
        .repo = &job->repo,
        .changes = &job->changes,
    };
    int status = review_run(&review);

    if (status != STATUS_OK)
        return status;
    if (job->changes.is_replaced)
        return report("the agent has removed or replaced '%s' itself; nothing is taken",
                      job->inside);
    return repo_changes_fetch(&job->changes, &job->repo, job->holt, job->sandbox->id);
}

static int patch_save(struct job *job)
{
    const char *path = job->options->patch;
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    int status;

    if (!out)
        return report("write '%s': %s", path, strerror(errno));
    status = patch_write(job, out, out == stdout && isatty(STDOUT_FILENO));
    if (fflush(out) != 0 || ferror(out))
        status = report("write '%s': %s", path, strerror(errno));
    if (out != stdout)
        (void)fclose(out);
    return status;
}

/* Asks until there is an answer. The end of the input is a no. */
static bool user_agrees(const struct job *job)
{
    char answer[16];

    for (;;) {
        (void)fprintf(stderr, "Take these changes to '%s'? [y/n] ", job->repo.text);
        if (!fgets(answer, sizeof(answer), stdin))
            return false;
        if (answer[0] == 'y' || answer[0] == 'Y')
            return true;
        if (answer[0] == 'n' || answer[0] == 'N')
            return false;
    }
}

static int changes_take(struct job *job)
{
    const struct run_agent_options *options = job->options;
    bool takes = options->takes;
    int status = STATUS_OK;

    if (job->changes.count == 0) {
        review_summary(&job->changes);
        report_note("the agent has changed nothing in '%s'", job->repo.text);
        return STATUS_OK;
    }
    if (!takes)
        status = patch_write(job, stdout, true);
    (void)fflush(stdout);
    review_summary(&job->changes);
    if (status == STATUS_OK && !takes)
        takes = user_agrees(job);
    if (status != STATUS_OK || !takes)
        return status;
    status = repo_apply(&job->repo, &job->changes);
    job->must_keep = status != STATUS_OK;
    return status;
}

/* Returns the status of taking the changes: nothing was changed before. */
static int job_finish(struct job *job)
{
    int status;

    if (job->options->discards)
        return STATUS_OK;
    status = agent_end(job);
    if (status == STATUS_OK && job->options->patch)
        return patch_save(job);
    if (status == STATUS_OK)
        status = changes_collect(job);
    job->must_keep = status != STATUS_OK;
    return status == STATUS_OK ? changes_take(job) : status;
}

static int job_run(struct job *job, char **words)
{
    int status = STATUS_OK, taken = STATUS_OK;

    inside_set(job);
    if (job->options->repo)
        status = repo_bring(job);
    if (status != STATUS_OK)
        return status;
    status = command_run_in(job, words);
    if (job->options->repo)
        taken = job_finish(job);
    return taken != STATUS_OK ? taken : status;
}

/* Removes the sandbox, or says how to reach it. */
static void sandbox_leave(const struct job *job)
{
    struct holt_error error;

    if (job->options->keeps || job->must_keep) {
        report_note("the sandbox is %s; 'holt diff %s " BEFORE "' shows its changes, 'holt rm %s' "
                    "removes it",
                    job->sandbox->id, job->sandbox->id, job->sandbox->id);
        return;
    }
    if (holt_sandbox_destroy(job->holt, job->sandbox->id, HOLT_NO_DEADLINE, &error) < 0)
        (void)report_holt_error(&error);
}

static int options_check(const struct run_agent_options *options)
{
    int chosen = options->takes + options->discards + (options->patch != NULL);

    if (chosen > 1)
        return command_misused(&command_agent_run, "takes one of --yes, --discard and --patch");
    if (chosen > 0 && !options->repo)
        return command_misused(&command_agent_run, "--yes, --discard and --patch need --repo");
    if (options->repo && chosen == 0 && !isatty(STDIN_FILENO))
        return command_misused(&command_agent_run,
                               "cannot ask without a terminal; give --yes, --discard or --patch");
    return STATUS_OK;
}

static int agent_run_run(int argc, char **argv)
{
    cleanup_with(options_done) struct run_agent_options options = { .repo = NULL };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(job_done) struct job job = { .options = &options,
                                              .repo.fd = -EBADF,
                                              .changes.staging_fd = -EBADF };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct command_words words;
    int status;

    if (!command_parse_with_id(&command_agent_run, &options, argc, argv, &words, &status))
        return status;
    status = options_check(&options);
    if (status == STATUS_OK && options.repo)
        status = repo_open(&job.repo, options.repo);
    if (status != STATUS_OK)
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.agent.idle_ms = IDLE_MS;
    status = agent_sandbox_make(connection.holt, argv[words.id], &options.agent, &sandbox);
    if (status != STATUS_OK)
        return status;
    job.holt = connection.holt;
    job.sandbox = sandbox;
    if (!*sandbox->agent->command) {
        (void)report("agent type '%s' has no command; use 'holt agent serve'",
                     sandbox->agent->type);
        status = STATUS_HOLT;
    } else {
        status = job_run(&job, argv + words.command);
    }
    sandbox_leave(&job);
    return status;
}

static const struct option_row rows[] = {
    { "repo", 0, "DIR", "work on a copy of this directory, which changes only at the end",
      OPTION_TEXT(struct run_agent_options, repo) },
    { "yes", 'y', NULL, "take the changes without a question",
      OPTION_FLAG(struct run_agent_options, takes) },
    { "discard", 0, NULL, "take nothing", OPTION_FLAG(struct run_agent_options, discards) },
    { "patch", 0, "FILE", "write the changes to a patch instead; '-': standard output",
      OPTION_TEXT(struct run_agent_options, patch) },
    { "keep", 0, NULL, "keep the sandbox", OPTION_FLAG(struct run_agent_options, keeps) },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &agent_options_table };

const struct command command_agent_run = {
    .group = "Agents",
    .name = "agent run",
    .operands = "TYPE [--] [TASK...]",
    .summary = "Let an agent work on a copy of a directory, then take its changes or not",
    .example = "holt agent run claude --repo . -- \"fix the tests\"",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = agent_run_run,
};
