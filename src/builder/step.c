// SPDX-License-Identifier: Apache-2.0
/* The steps of a build. Those of images are in builder/image_step.c; these need bash in the
 * sandbox:
 *
 *   RUN      [command] or [command, user]
 *   COPY     [source, destination, user or "", octal mode or ""], and filesHash, the hash of an
 *            archive that contains the source
 *   ENV      [name, value, name, value, ...]
 *   WORKDIR  [path]
 *   USER     [name]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"

/* Runs as root with the archive on stdin; arguments: source, destination, owner, mode, working
 * directory. */
static const char copy_script[] =
    "set -e; shopt -s dotglob nullglob\n"
    "t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT\n"
    "tar -xzf - --no-same-owner -C \"$t\"\n"
    "chown -R \"$3:\" \"$t\"; [ -z \"$4\" ] || chmod -R \"$4\" \"$t\"/*\n"
    "mkdir -p \"$5\"; cd \"$5\"; IFS=; src=(\"$t\"/${1#/})\n"
    "[ ${#src[@]} -gt 0 ] || { echo \"no '$1' to copy\" >&2; exit 1; }\n"
    "if [ ${#src[@]} -eq 1 ] && [ -d \"${src[0]}\" ]; then\n"
    "    mkdir -p \"$2\"; cp -a \"${src[0]}/.\" \"$2/\"\n"
    "elif [ ${#src[@]} -eq 1 ] && [ \"${2%/}\" = \"$2\" ] && [ ! -d \"$2\" ]; then\n"
    "    mkdir -p \"$(dirname \"$2\")\"; cp -a \"${src[0]}\" \"$2\"\n"
    "else\n"
    "    mkdir -p \"$2\"; cp -a \"${src[@]}\" \"$2/\"\n"
    "fi\n";

static const char workdir_script[] = "mkdir -p \"$1\" && chown \"$2:\" \"$1\"";

const char *build_step_arg(const json_t *step, size_t index)
{
    const char *text = json_string_value(json_array_get(json_object_get(step, "args"), index));

    return text ? text : "";
}

static size_t step_arg_count(const json_t *step)
{
    return json_array_size(json_object_get(step, "args"));
}

static const char *step_type(const json_t *step)
{
    const char *type = json_string_value(json_object_get(step, "type"));

    return type ? type : "";
}

static bool is_hash(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    return len > 0 && len <= 128 && strspn(text, "0123456789abcdefABCDEF") == len;
}

static bool args_are_text(const json_t *step)
{
    for (size_t i = 0; i < step_arg_count(step); i++)
        if (!json_is_string(json_array_get(json_object_get(step, "args"), i)))
            return false;
    return true;
}

/* Replaces an allocated string by a copy of the text. */
static void text_set(char **slot, const char *text)
{
    char *copy = xstrdup(text);

    free(*slot);
    *slot = copy;
}

static int step_run_run(struct build *build, const json_t *step, struct err *err)
{
    const struct build_command command = {
        .text = build_step_arg(step, 0),
        .user = *build_step_arg(step, 1) ? build_step_arg(step, 1) : build->user,
        .cwd = build->workdir,
        .input_fd = -1,
    };

    return build_run(build, &command, err);
}

static int step_run_copy(struct build *build, const json_t *step, struct err *err)
{
    const char *hash = json_string_value(json_object_get(step, "filesHash"));
    cleanup_free char *path = xasprintf("%s/%s.tar.gz", build->files, hash);
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_free char *source = xstrdup(build_step_arg(step, 0)),
                      *target = xstrdup(build_step_arg(step, 1));
    cleanup_free char *owner =
        xstrdup(*build_step_arg(step, 2) ? build_step_arg(step, 2) : build->user);
    cleanup_free char *mode = xstrdup(build_step_arg(step, 3)), *workdir = xstrdup(build->workdir);
    char *const args[] = { source, target, owner, mode, workdir, NULL };

    if (fd < 0)
        return err_set(err, ERR_NOT_FOUND, "the files of '%.100s' were not uploaded", source);
    return build_run(build,
                     &(struct build_command){
                         .text = copy_script, .what = "COPY", .args = args, .input_fd = fd },
                     err);
}

static void step_apply_env(struct build *build, const json_t *step)
{
    for (size_t i = 0; i + 1 < step_arg_count(step); i += 2)
        (void)json_object_set_new(build->env, build_step_arg(step, i),
                                  json_string(build_step_arg(step, i + 1)));
}

/* Returns the absolute path; a relative one starts at the present working directory. */
static char *step_workdir(const struct build *build, const json_t *step)
{
    const char *path = build_step_arg(step, 0);

    return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", build->workdir, path);
}

static int step_run_workdir(struct build *build, const json_t *step, struct err *err)
{
    cleanup_free char *path = step_workdir(build, step), *owner = xstrdup(build->user);
    char *const args[] = { path, owner, NULL };

    return build_run(build,
                     &(struct build_command){
                         .text = workdir_script, .what = "WORKDIR", .args = args, .input_fd = -1 },
                     err);
}

static void step_apply_workdir(struct build *build, const json_t *step)
{
    cleanup_free char *path = step_workdir(build, step);

    text_set(&build->workdir, path);
}

/* Fails here if the user does not exist, not later in a sandbox of the template. */
static int step_run_user(struct build *build, const json_t *step, struct err *err)
{
    return build_run(
        build,
        &(struct build_command){
            .text = "whoami", .user = build_step_arg(step, 0), .cwd = "/", .input_fd = -1 },
        err);
}

static void step_apply_user(struct build *build, const json_t *step)
{
    text_set(&build->user, build_step_arg(step, 0));
}

static const struct step_kind {
    const char *type;
    size_t least; /* number of required arguments */
    bool writes;
    int (*run)(struct build *build, const json_t *step, struct err *err); /* or NULL */
    void (*apply)(struct build *build, const json_t *step);               /* or NULL */
} kinds[] = {
    { "RUN", 1, true, step_run_run, NULL },
    { "COPY", 2, true, step_run_copy, NULL },
    { "ENV", 2, false, NULL, step_apply_env },
    { "WORKDIR", 1, true, step_run_workdir, step_apply_workdir },
    { "USER", 1, false, step_run_user, step_apply_user },
    { "EXEC", 1, true, step_run_exec, NULL },
    { "PLACE", 4, true, step_run_place, NULL },
    { "WRITE", 4, true, step_run_write, NULL },
    { "ENTER", 1, true, step_run_enter, step_apply_workdir },
    { "AS", 1, false, NULL, step_apply_user },
};

static const struct step_kind *step_kind_find(const json_t *step)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].type, step_type(step)) == 0)
            return &kinds[i];
    return NULL;
}

int build_step_check(const json_t *step, struct err *err)
{
    const struct step_kind *kind = step_kind_find(step);

    if (!kind)
        return err_set(err, ERR_INVALID, "no step '%.32s'", step_type(step));
    if (!args_are_text(step) || step_arg_count(step) < kind->least ||
        *build_step_arg(step, 0) == '\0')
        return err_set(err, ERR_INVALID, "a step %s needs %zu arguments", kind->type, kind->least);
    if ((kind->run == step_run_copy || kind->run == step_run_place) &&
        !is_hash(json_string_value(json_object_get(step, "filesHash"))))
        return err_set(err, ERR_INVALID, "a step %s needs filesHash", kind->type);
    for (size_t i = 0; kind->apply == step_apply_env && i < step_arg_count(step); i += 2)
        if (*build_step_arg(step, i) == '\0' || strchr(build_step_arg(step, i), '='))
            return err_set(err, ERR_INVALID, "'%.64s' is not the name of a variable",
                           build_step_arg(step, i));
    return 0;
}

bool build_step_writes(const json_t *step)
{
    return step_kind_find(step)->writes;
}

int build_step_run(struct build *build, const json_t *step, struct err *err)
{
    const struct step_kind *kind = step_kind_find(step);

    return kind->run ? kind->run(build, step, err) : 0;
}

void build_step_apply(struct build *build, const json_t *step)
{
    const struct step_kind *kind = step_kind_find(step);

    if (kind->apply)
        kind->apply(build, step);
}

void build_step_describe(const json_t *step, char *into, size_t size)
{
    size_t used = (size_t)snprintf(into, size, "%s", step_type(step));

    for (size_t i = 0; i < step_arg_count(step) && used < size; i++)
        used += (size_t)snprintf(into + used, size - used, " %s", build_step_arg(step, i));
}
