// SPDX-License-Identifier: Apache-2.0
#include "builder/dockerfile/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "builder/dockerfile/parse.h"
#include "builder/dockerfile/plan.h"
#include "builder/source.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/image/pull.h"
#include "store/import/image.h"
#include "store/template/settings.h"

enum { BUILDS_MAX = 4, LIMIT_MS = 3600 * 1000, POLL_MS = 50, LOG_LINES = 64, OLD_NAME_BYTES = 8 };

/* What a stage has made, for the stages that begin with it. */
struct result {
    bool is_wanted, is_done;
    char template[TEMPLATE_NAME_MAX + 1];
    char hash[65];         /* "": the template is no step of a build */
    struct template *held; /* open, so that it is not removed */
    json_t *env, *image;
    char *user, *workdir;
};

struct maker {
    struct host *host;
    const struct dockerfile_build *asked;
    struct dockerfile file;
    struct stages stages;
    struct result results[STAGES_MAX];
    struct build_sources *sources;
    struct template_record record; /* of the new template */
};

static void result_done(struct result *result)
{
    template_close(result->held);
    json_decref(result->env);
    json_decref(result->image);
    free(result->user);
    free(result->workdir);
}

static void maker_done(struct maker *maker)
{
    build_sources_free(maker->sources);
    for (size_t i = 0; i < STAGES_MAX; i++)
        result_done(&maker->results[i]);
    stages_done(&maker->stages);
    dockerfile_done(&maker->file);
}

static void log_line(const struct maker *maker, const char *what, const char *word)
{
    cleanup_free char *line = xasprintf("%s %s", what, word);

    maker->asked->log(maker->asked->log_context, line);
}

/* --- images ----------------------------------------------------------------------------------- */

static void progress_ignore(const struct template_progress *progress, void *context)
{
    (void)progress;
    (void)context;
}

/* Finds the template that a word after FROM stands for: one of the caller, or an image, which is
 * pulled if it is missing. */
static int template_find(struct maker *maker, const char *word, struct template_record *ret,
                         struct err *err)
{
    const struct image_pull pull = {
        .reference = word, .user = "", .password = "", .progress = progress_ignore
    };
    struct template_info info;
    struct image_ref ref;
    int r = owned_template_find(maker->host, maker->asked->caller, word, ret, err);

    if (r == 0 || err->kind != ERR_NOT_FOUND || image_ref_parse(word, &ref) < 0)
        return r;
    /* "debian" is the image debian:latest, if no template has this name. */
    if (owned_template_find(maker->host, maker->asked->caller, ref.familiar, ret, err) == 0)
        return 0;
    log_line(maker, "pulling", ref.familiar);
    return image_pull(maker->host, maker->asked->caller, &pull, ret, &info, err);
}

/* Reads the settings of a template as the state that a stage begins with. */
static int base_read(struct maker *maker, const char *template, struct result *ret, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = template_settings_read(host_store(maker->host), template, &settings, err);

    if (r < 0)
        return r;
    (void)snprintf(ret->template, sizeof(ret->template), "%s", template);
    ret->env = settings.env ? json_deep_copy(settings.env) : json_object();
    ret->image = settings.image ? json_deep_copy(settings.image) : json_object();
    ret->user = xstrdup(settings.image ? settings.user : "");
    ret->workdir = xstrdup(settings.image && *settings.workdir ? settings.workdir : "/");
    return 0;
}

static int base_find(struct maker *maker, const char *word, struct result *ret, struct err *err)
{
    struct template_record record;
    int r;

    if (strcmp(word, "scratch") == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "FROM scratch is not supported: begin with an image, such as busybox");
    r = template_find(maker, word, &record, err);
    return r < 0 ? r : base_read(maker, record.store_name, ret, err);
}

/* Programs are found in images without a PATH as Docker does it. */
static void path_set(struct result *base)
{
    if (!json_object_get(base->env, "PATH"))
        (void)json_object_set_new(
            base->env, "PATH",
            json_string("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
}

/* --- which stages ----------------------------------------------------------------------------- */

static const char *from_flag(const struct instruction *item)
{
    for (size_t i = 0; i < item->flag_count; i++)
        if (strncmp(item->flags[i], "--from=", 7) == 0)
            return item->flags[i] + 7;
    return NULL;
}

/* Marks a stage and all that it needs; a stage needs earlier ones only. */
static void stages_mark(struct maker *maker, size_t target)
{
    maker->results[target].is_wanted = true;
    for (size_t i = target + 1; i > 0; i--) {
        const struct stage *stage = &maker->stages.items[i - 1];
        int needed = stage_named(&maker->stages, i - 1, stage->base);

        if (!maker->results[i - 1].is_wanted)
            continue;
        if (needed >= 0)
            maker->results[needed].is_wanted = true;
        for (size_t j = 0; j < stage->count; j++) {
            const char *from = from_flag(&stage->items[j]);

            needed = from ? stage_named(&maker->stages, i - 1, from) : -1;
            if (needed >= 0)
                maker->results[needed].is_wanted = true;
        }
    }
}

/* --- one stage -------------------------------------------------------------------------------- */

/* Makes a word of --from stand for the template of a stage, or of an image. */
static int source_add(struct maker *maker, size_t stage, const char *word, struct err *err)
{
    int found = stage_named(&maker->stages, stage, word);
    struct template_record record;
    int r;

    if (!*word || build_sources_has(maker->sources, word))
        return 0;
    if (found >= 0) {
        build_sources_add(maker->sources, word, maker->results[found].template);
        return 0;
    }
    r = template_find(maker, word, &record, err);
    if (r == 0)
        build_sources_add(maker->sources, word, record.store_name);
    return r;
}

static int on_look(struct plan *plan, const struct plan_source *source, json_t *paths,
                   char ret_hex[65], struct err *err)
{
    struct maker *maker = plan->context;
    int r = source_add(maker, plan->stage, source->from, err);

    for (char *const *pattern = source->patterns; r == 0 && *pattern; pattern++)
        r = build_source_match(maker->sources, source->from, *pattern, paths, err);
    return r < 0 ? r : build_source_digest(maker->sources, source->from, paths, ret_hex, err);
}

static json_t *command_of(const json_t *image)
{
    json_t *command = json_array();

    (void)json_array_extend(command, json_object_get(image, "entrypoint"));
    (void)json_array_extend(command, json_object_get(image, "cmd"));
    return command;
}

static json_t *settings_of(const struct plan *plan)
{
    return json_pack("{s:O, s:s, s:s, s:o, s:O}", "env", plan->env, "workdir", plan->workdir,
                     "user", plan->user, "command", command_of(plan->image), "image", plan->image);
}

/* Passes on the lines that a build has logged since the last time. */
static size_t logs_pass(const struct maker *maker, struct build *build, size_t offset)
{
    cleanup_json json_t *lines = build_logs(build, offset, LOG_LINES);
    const json_t *line;
    size_t i;

    json_array_foreach(lines, i, line)
        maker->asked->log(maker->asked->log_context,
                          json_string_value(json_object_get(line, "message")));
    return json_array_size(lines);
}

/* Waits for a build, and cancels it if the caller has gone. */
static struct build_state build_wait(struct maker *maker, struct build *build)
{
    struct build_state state;
    size_t offset = 0, count;

    for (;;) {
        build_get(build, &state);
        do {
            count = logs_pass(maker, build, offset);
            offset += count;
        } while (count > 0);
        if (state.status == BUILD_IS_READY || state.status == BUILD_HAS_FAILED)
            return state;
        if (atomic_load(maker->asked->is_cancelled))
            build_cancel(build);
        clock_sleep_ms(POLL_MS);
    }
}

static int steps_run(struct maker *maker, const struct plan *plan, const struct result *base,
                     bool is_last, struct build_state *ret, struct err *err)
{
    cleanup_json json_t *settings = is_last ? settings_of(plan) : NULL;
    const struct build_spec spec = {
        .caller = maker->asked->caller,
        .from = base->template,
        .name = is_last ? maker->record.store_name : "",
        .is_reserved = is_last,
        .steps = plan->steps,
        .start_command = "",
        .ready_command = "",
        .is_forced = maker->asked->is_forced,
        .files = "",
        .sources = maker->sources,
        .settings = settings,
        .origin_hash = base->hash[0] ? base->hash : NULL,
        .user = base->user,
        .workdir = base->workdir,
        .limit_ms = LIMIT_MS,
    };
    struct build *build = NULL;
    int r = build_start(maker->host, &spec, &build, err);

    if (r < 0)
        return r;
    *ret = build_wait(maker, build);
    build_free(build);
    if (ret->status == BUILD_IS_READY)
        return 0;
    *err = ret->err;
    return err_wrap(err, "step %s", ret->step);
}

static int base_of(struct maker *maker, size_t index, struct result *ret, struct err *err)
{
    const struct stage *stage = &maker->stages.items[index];
    int earlier = stage_named(&maker->stages, index, stage->base);
    const struct result *from;

    if (earlier < 0)
        return base_find(maker, stage->base, ret, err);
    from = &maker->results[earlier];
    memcpy(ret->template, from->template, sizeof(ret->template));
    memcpy(ret->hash, from->hash, sizeof(ret->hash));
    ret->env = json_deep_copy(from->env);
    ret->image = json_deep_copy(from->image);
    ret->user = xstrdup(from->user);
    ret->workdir = xstrdup(from->workdir);
    return 0;
}

/* Keeps what the stage has made. */
static int result_take(struct maker *maker, struct plan *plan, const struct build_state *state,
                       struct result *ret, struct err *err)
{
    (void)snprintf(ret->template, sizeof(ret->template), "%s", state->last);
    memcpy(ret->hash, state->hash, sizeof(ret->hash));
    ret->env = json_incref(plan->env);
    ret->image = json_incref(plan->image);
    ret->user = TAKE_PTR(plan->user);
    ret->workdir = TAKE_PTR(plan->workdir);
    return template_open(host_store(maker->host), ret->template, &ret->held, err);
}

static int stage_run(struct maker *maker, size_t index, bool is_last, struct err *err)
{
    cleanup_with(plan_done) struct plan plan = {
        .stages = &maker->stages, .stage = index, .look = on_look, .context = maker
    };
    cleanup_with(result_done) struct result base = { .is_wanted = true };
    struct build_state state;
    int r;

    log_line(maker, "FROM", maker->stages.items[index].base);
    r = base_of(maker, index, &base, err);
    if (r < 0)
        return err_wrap(err, "line %u", maker->stages.items[index].from->line);
    path_set(&base);
    plan_init(&plan, base.env, base.image, base.user, base.workdir);
    r = plan_stage(&plan, err);
    if (r == 0)
        r = steps_run(maker, &plan, &base, is_last, &state, err);
    return r < 0 || is_last ? r : result_take(maker, &plan, &state, &maker->results[index], err);
}

/* --- the template ----------------------------------------------------------------------------- */

/* Gives the template its name; the earlier one goes, unless something uses it. */
static int template_publish(struct maker *maker, const char *name, struct err *err)
{
    char old_name[TEMPLATE_NAME_MAX + 1], digits[2 * OLD_NAME_BYTES + 1];
    struct template_record old;
    struct err ignored;
    bool has_old =
        owned_template_find(maker->host, maker->asked->caller, name, &old, &ignored) == 0 &&
        strcmp(old.owner, maker->asked->caller->owner) == 0;
    int r = random_hex(digits, OLD_NAME_BYTES);

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    (void)snprintf(old_name, sizeof(old_name), "old-%s", digits);
    r = owned_template_name(maker->host, &maker->record, name, old_name, err);
    if (r == 0 && has_old)
        (void)host_remove_template(maker->host, old.store_name, &ignored);
    return r;
}

static int name_check(const char *name, char ret[static IMAGE_REF_MAX + 1], struct err *err)
{
    struct image_ref ref;

    if (image_ref_is(name) && image_ref_parse(name, &ref) == 0 && !ref.digest[0]) {
        (void)snprintf(ret, IMAGE_REF_MAX + 1, "%s", ref.familiar);
        return 0;
    }
    if (!template_is_store_name(name) || strcmp(name, "host") == 0)
        return err_set(err, ERR_INVALID, "'%.80s' is neither a name of a template nor a reference",
                       name);
    (void)snprintf(ret, IMAGE_REF_MAX + 1, "%s", name);
    return 0;
}

static int stages_run(struct maker *maker, struct err *err)
{
    int target = stage_target(&maker->stages, maker->asked->target, err), r = 0;

    if (target < 0)
        return target;
    stages_mark(maker, (size_t)target);
    for (size_t i = 0; r == 0 && i <= (size_t)target; i++)
        if (maker->results[i].is_wanted)
            r = stage_run(maker, i, i == (size_t)target, err);
    return r;
}

static int template_make(struct maker *maker, const char *name, struct err *err)
{
    int r = owned_template_reserve_image(maker->host, maker->asked->caller, &maker->record, err);

    if (r < 0)
        return r;
    r = stages_run(maker, err);
    if (r < 0) {
        owned_template_release(maker->host, maker->record.store_name);
        return r;
    }
    fault_point("build.made");
    return template_publish(maker, name, err);
}

/* Builds with the limit of those that run at a time. */
static int template_make_in_turn(struct maker *maker, const char *name, struct err *err)
{
    static atomic_uint running;
    int r;

    if (atomic_fetch_add(&running, 1) >= BUILDS_MAX)
        r = err_set(err, ERR_EXHAUSTED, "%d templates are being built already: try again later",
                    BUILDS_MAX);
    else
        r = template_make(maker, name, err);
    atomic_fetch_sub(&running, 1);
    return r;
}

int dockerfile_build(struct host *host, const struct dockerfile_build *asked,
                     struct template_record *ret_record, struct template_info *ret, struct err *err)
{
    cleanup_with(maker_done) struct maker maker = { .host = host, .asked = asked };
    char name[IMAGE_REF_MAX + 1];
    int r = name_check(asked->name, name, err);

    if (r == 0)
        r = dockerfile_parse(asked->text, strlen(asked->text), &maker.file, err);
    if (r == 0)
        r = stages_find(&maker.file, asked->args, image_arch(), &maker.stages, err);
    if (r < 0)
        return r;
    maker.sources = build_sources_new(host, asked->caller, asked->context, asked->context_path);
    r = template_make_in_turn(&maker, name, err);
    if (r < 0)
        return r;
    *ret_record = maker.record;
    return template_get_info(host_store(host), maker.record.store_name, ret, err);
}
