// SPDX-License-Identifier: Apache-2.0
/* Builds the templates that Holt knows by name. holt builds the root file system, not the daemon:
 * that takes minutes, a mirror and tools of the distribution, and must end with the terminal. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/spawn_signals.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/template/image_build.h"
#include "cli/template/templates.h"
#include "holt.h"

/* Embeds files of templates/. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".section .rodata\n" #symbol ": .incbin \"" path "\"\n.byte 0\n.previous\n");          \
    extern const char symbol[]

EMBED(template_build_script, "templates/build");
EMBED(interpreter_server, "templates/code-interpreter/server.py");
EMBED(interpreter_forked, "templates/code-interpreter/forked.py");
EMBED(interpreter_bash_kernel, "templates/code-interpreter/bash_kernel.py");
EMBED(interpreter_display, "templates/code-interpreter/display.py");
EMBED(interpreter_run, "templates/code-interpreter/run.py");
EMBED(interpreter_tslab, "templates/code-interpreter/tslab.js");

#define INTERPRETER "opt/code-interpreter"

/* A file to add to the root. */
struct recipe_file {
    const char *path; /* relative to the root */
    const char *content;
};

static const struct recipe_file interpreter_files[] = {
    { INTERPRETER "/server.py", interpreter_server },
    { INTERPRETER "/forked.py", interpreter_forked },
    { INTERPRETER "/bash_kernel.py", interpreter_bash_kernel },
    { INTERPRETER "/display.py", interpreter_display },
    { INTERPRETER "/run.py", interpreter_run },
    { INTERPRETER "/tslab.js", interpreter_tslab },
};

/* A template made from the root file system. */
struct recipe {
    const char *name;
    const struct recipe_file *files; /* below `dir` */
    size_t file_count;
    const char *dir; /* relative to the root */
    const char *start, *ready;
};

static const struct recipe recipes[] = {
    { .name = "base" },
    {
        .name = "code-interpreter-v1",
        .files = interpreter_files,
        .file_count = ARRAY_SIZE(interpreter_files),
        .dir = INTERPRETER,
        /* Cells run as root, as at E2B; sudo needs a runtime that allows set-uid programs. */
        .start = "[[ $(</proc/self/status) == *NoNewPrivs:?1* ]] || root='sudo -nEH'; "
                 "exec $root /usr/bin/python3 /" INTERPRETER "/server.py",
        .ready = "curl --silent --fail http://127.0.0.1:49999/health",
    },
};

struct build_options {
    struct output_options output;
    struct image_build_options image;
    const char *archive;
    const char *packages;
    bool is_minimal;
};

static int set_packages(void *into, const char *value, struct err *err)
{
    if (value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789+-.,")] || *value == '-')
        return err_set(err, ERR_INVALID, "'%.100s' is not a list of packages", value);
    ((struct build_options *)into)->packages = value;
    return 0;
}

static int set_arg(void *into, const char *value, struct err *err)
{
    struct image_build_options *image = &((struct build_options *)into)->image;
    size_t name_len = strcspn(value, "=");
    const char *given = value;

    if (name_len == 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not NAME=VALUE or NAME", value);
    if (!value[name_len]) {
        if (!getenv(value))
            return 0;
        given = xasprintf("%s=%s", value, getenv(value)); /* lasts as long as holt */
    }
    image->args = xreallocarray(image->args, image->arg_count + 2, sizeof(*image->args));
    image->args[image->arg_count++] = given;
    image->args[image->arg_count] = NULL;
    return 0;
}

static const struct recipe *recipe_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(recipes); i++)
        if (strcmp(recipes[i].name, name) == 0)
            return &recipes[i];
    return NULL;
}

/* Runs a program whose output goes to our stderr: stdout is for the result. Returns its exit
 * status.
 */
static int run_program(const char *const *args)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int status = 0, r;
    pid_t pid = -1;

    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&actions);
    r = spawn_signals_reset(&attributes, 0);
    if (r == 0)
        r = -posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (r == 0)
        r = -posix_spawnp(&pid, args[0], &actions, &attributes, (char *const *)(uintptr_t)args,
                          environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (r < 0)
        return report("template build: %s: %s", args[0], strerror(-r));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_HOLT;
}

/* Builds the archive of the root, unless an earlier build has kept it. */
static int make_archive(const struct recipe *recipe, const char *dir, const char *archive,
                        const struct build_options *options)
{
    cleanup_free char *script = xasprintf("%s/build", dir);
    int r;

    if (access(archive, R_OK) == 0)
        return STATUS_OK;
    r = file_create_at(AT_FDCWD, script, 0700, template_build_script);
    if (r < 0)
        return report("template build: %s: %s", script, strerror(-r));
    return run_program((const char *const[]){ "sh", script, archive, recipe->name,
                                              options->is_minimal ? "minimal" : "full",
                                              options->packages, NULL });
}

/* Creates a directory below dir, with its parents. */
static int make_dirs(const char *dir, const char *path)
{
    cleanup_free char *each = xasprintf("%s/%s/", dir, path);

    for (char *slash = strchr(each + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(each, 0755) < 0 && errno != EEXIST)
            return report("template build: %s: %s", each, strerror(errno));
        *slash = '/';
    }
    return STATUS_OK;
}

/* Writes a copy of the archive with the files of the recipe to dir/root.tar. */
static int add_files(const struct recipe *recipe, const char *dir, const char *archive)
{
    cleanup_free char *root = xasprintf("%s/root", dir), *copy = xasprintf("%s/root.tar", dir);
    int status = mkdir(root, 0755) < 0 ? report("template build: %s: %s", root, strerror(errno))
                                       : make_dirs(root, recipe->dir);

    for (size_t i = 0; status == STATUS_OK && i < recipe->file_count; i++) {
        cleanup_free char *file = xasprintf("%s/%s", root, recipe->files[i].path);
        int r = file_create_at(AT_FDCWD, file, 0755, recipe->files[i].content);

        if (r < 0)
            status = report("template build: %s: %s", file, strerror(-r));
    }
    if (status == STATUS_OK)
        status =
            run_program((const char *const[]){ "cp", "--reflink=auto", "--", archive, copy, NULL });
    if (status != STATUS_OK)
        return status;
    return run_program((const char *const[]){ "tar", "--append", "--owner=0", "--group=0",
                                              "--mode=u=rwX,go=rX", "-f", copy, "-C", root,
                                              recipe->dir, NULL });
}

/* Fails if a template of this name exists, before minutes are spent on one that the daemon would
 * refuse. */
static int check_name(const char *name)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_template_list *list = NULL;
    struct holt_error error;
    struct err err;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i]->name, name) != 0)
            continue;
        (void)err_set(&err, ERR_EXISTS, "template '%s' exists already", name);
        return report_err(&err);
    }
    return STATUS_OK;
}

static int import(const struct recipe *recipe, const char *path,
                  const struct output_options *output)
{
    struct holt_template_settings settings = HOLT_INIT(holt_template_settings);

    settings.user = "user";
    settings.allows_setuid = true;
    settings.start_command = recipe->start;
    settings.ready_command = recipe->ready;
    return template_import(recipe->name, path, &settings, output);
}

/* Prints the size and the time to stderr: stdout has only the name. */
static void tell_size(const struct recipe *recipe, const char *archive, uint64_t took_ms)
{
    struct stat info;

    if (stat(archive, &info) == 0)
        (void)fprintf(stderr, "%s: %" PRIu64 " MiB, built in %" PRIu64 " s\n", recipe->name,
                      (uint64_t)info.st_size >> 20, took_ms / 1000);
}

/* Tells which step of the build begins, and how long the others took, on stderr. How many packages
 * there are is known to mmdebstrap only, which prints its own progress there. */
static void tell_step(const struct recipe *recipe, unsigned step, const char *what,
                      uint64_t began_ms)
{
    unsigned steps = recipe->files ? 3 : 2;

    (void)fprintf(stderr, "%s: step %u of %u, after %" PRIu64 " s: %s\n", recipe->name,
                  step < steps ? step : steps, steps, (clock_ms() - began_ms) / 1000, what);
}

static int build_in(const char *dir, const struct recipe *recipe,
                    const struct build_options *options)
{
    cleanup_free char *own = xasprintf("%s/base.tar", dir), *with = xasprintf("%s/root.tar", dir);
    const char *archive = options->archive ? options->archive : own;
    cleanup_free char *path = NULL;
    uint64_t began_ms = clock_ms();
    int status;

    tell_step(recipe, 1, "make the root (mmdebstrap takes minutes)", began_ms);
    status = make_archive(recipe, dir, archive, options);
    if (status == STATUS_OK && recipe->files) {
        tell_step(recipe, 2, "add the files of Holt", began_ms);
        status = add_files(recipe, dir, archive);
        archive = with;
    }
    if (status != STATUS_OK)
        return status;
    path = realpath(archive, NULL);
    if (!path)
        return report("template build: %s: %s", archive, strerror(errno));
    tell_step(recipe, 3, "import it", began_ms);
    status = import(recipe, path, &options->output);
    if (status == STATUS_OK)
        tell_size(recipe, path, clock_ms() - began_ms);
    return status;
}

static int template_build_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME or a DIRECTORY" };
    char dir[] = "/tmp/holt-build.XXXXXX";
    struct build_options options = { .archive = NULL };
    const struct recipe *recipe;
    int next, status;

    if (!command_parse(&command_template_build, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_build, &operands, argc - next))
        return STATUS_HOLT;
    recipe = recipe_find(argv[next]);
    if (options.image.file || options.image.name || strchr(argv[next], '/') ||
        strcmp(argv[next], ".") == 0) {
        status = image_build_run(argv[next], &options.image, &options.output);
        free(options.image.args);
        return status;
    }
    if (!recipe)
        return report_usage("template build: no recipe '%s' (the recipes are base and "
                            "code-interpreter-v1; a directory has a '/')",
                            argv[next]);
    status = check_name(recipe->name);
    if (status != STATUS_OK)
        return status;
    if (!mkdtemp(dir))
        return report("template build: %s: %s", dir, strerror(errno));
    status = build_in(dir, recipe, &options);
    (void)tree_remove_at(AT_FDCWD, dir);
    return status;
}

static const struct option_row rows[] = {
    { "archive", 0, "FILE", "keep the root in this archive, or use it if it exists",
      OPTION_TEXT(struct build_options, archive) },
    { "packages", 0, "NAMES", "additional packages, separated by commas",
      OPTION_CALL(set_packages) },
    { "file", 'f', "FILE", "build this Dockerfile; by default, that in the directory",
      OPTION_TEXT(struct build_options, image.file) },
    { "tag", 't', "NAME", "the name of the template; by default, that of the directory",
      OPTION_TEXT(struct build_options, image.name) },
    { "build-arg", 0, "NAME[=VALUE]", "set an ARG of the Dockerfile, or pass on a variable",
      OPTION_CALL(set_arg) },
    { "target", 0, "STAGE", "build this stage; by default, the last one",
      OPTION_TEXT(struct build_options, image.target) },
    { "no-cache", 0, NULL, "run all steps, even if nothing has changed",
      OPTION_FLAG(struct build_options, image.is_forced) },
    { "minimal", 0, NULL, "without pip, Node.js and the libraries for data",
      OPTION_FLAG(struct build_options, is_minimal) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_build = {
    .group = "Templates",
    .name = "template build",
    .operands = "NAME|DIRECTORY",
    .summary = "Build a template from a Dockerfile, or base or code-interpreter-v1",
    .example = "holt template build -t tools .",
    .options = &table,
    .run = template_build_run,
};
