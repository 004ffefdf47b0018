// SPDX-License-Identifier: Apache-2.0
#include "host/machine/runtime_choice.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/owner/owner_internal.h"
#include "runtime/runtime.h"
#include "store/template/settings.h"

/* Everything that has a say; names are "" where there is no rule. */
struct rules {
    const char *owner;
    char allow[CEILING_TEXT_SIZE]; /* of holt.conf; "": all */
    char min[CEILING_NAME_SIZE];
    struct ceilings ceilings;
    char template_default[CEILING_NAME_SIZE];
    char template_min[CEILING_NAME_SIZE];
};

static bool list_includes(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (;;) {
        size_t word = strcspn(list, ",");

        if (word == len && strncmp(list, name, len) == 0)
            return true;
        if (list[word] == '\0')
            return false;
        list += word + 1;
    }
}

/* Returns the strength of a runtime; one that this Holt does not know is stronger than all that it
 * has, so that nothing passes for it. */
static unsigned strength_of(const char *name)
{
    const struct runtime_ops *ops;
    struct err ignored;

    return runtime_find(name, &ops, &ignored) < 0 ? RUNTIME_OWN_KERNEL + 1 : ops->strength;
}

static bool is_weaker(const struct runtime_ops *ops, const char *min)
{
    return *min && ops->strength < strength_of(min);
}

static int template_rules_read(struct host *host, const char *template, struct rules *rules,
                               struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = template ? template_settings_read(host->store, template, &settings, err) : -ENOENT;

    if (r < 0)
        return template ? r : 0;
    (void)snprintf(rules->template_default, sizeof(rules->template_default), "%s",
                   settings.runtime);
    (void)snprintf(rules->template_min, sizeof(rules->template_min), "%s", settings.runtime_min);
    return 0;
}

static int rules_read(struct host *host, const struct runtime_holder *holder, struct rules *ret,
                      struct err *err)
{
    *ret = (struct rules){ .owner = holder->owner };
    lock_take(&host->lock);
    memcpy(ret->allow, host->runtime_allow, sizeof(ret->allow));
    memcpy(ret->min, host->runtime_min, sizeof(ret->min));
    owner_table_get_ceilings(host->owners, holder->owner, &ret->ceilings);
    lock_release(&host->lock);
    return template_rules_read(host, holder->template, ret, err);
}

/* Checks the rules of holt.conf and of the template. */
static int host_rules_check(const struct rules *rules, const struct runtime_ops *ops,
                            struct err *err)
{
    if (*rules->allow && !list_includes(rules->allow, ops->name)) {
        (void)err_set(err, ERR_DENIED,
                      "this host does not allow the runtime '%s', only %.80s (runtime.allow)",
                      ops->name, rules->allow);
        return err_remedy(err, "choose one of them with --runtime, or change runtime.allow in "
                               "holt.conf");
    }
    if (is_weaker(ops, rules->min)) {
        (void)err_set(err, ERR_DENIED,
                      "the runtime '%s' is weaker than '%s', the weakest that this host allows "
                      "(runtime.min)",
                      ops->name, rules->min);
        return err_remedy(err, "use --runtime %s, or change runtime.min in holt.conf", rules->min);
    }
    if (!is_weaker(ops, rules->template_min))
        return 0;
    (void)err_set(err, ERR_DENIED,
                  "the runtime '%s' is weaker than '%s', the weakest that the template allows",
                  ops->name, rules->template_min);
    return err_remedy(err, "use --runtime %s, or change it with 'holt template runtime --min'",
                      rules->template_min);
}

static int owner_rules_check(const struct rules *rules, const struct runtime_ops *ops,
                             struct err *err)
{
    const struct ceilings *ceilings = &rules->ceilings;
    const char *list = ceilings->is_set[CEILING_RUNTIMES] ? ceilings->runtimes : "";
    const char *min = ceilings->is_set[CEILING_RUNTIME_MIN] ? ceilings->runtime_min : "";

    if (*list && !list_includes(list, ops->name)) {
        (void)err_refuse(err, CAUSE_CEILING_REACHED,
                         "owner '%s' cannot use the runtime '%.15s', only %.80s (ceiling "
                         "owner.runtimes)",
                         rules->owner, ops->name, list);
        return err_remedy(err, "choose one of them, or let an administrator add it with "
                               "'holt owner set --runtimes'");
    }
    if (!is_weaker(ops, min))
        return 0;
    (void)err_refuse(
        err, CAUSE_CEILING_REACHED,
        "owner '%s' cannot use the runtime '%.15s', which is weaker than '%s' (ceiling "
        "owner.runtime-min)",
        rules->owner, ops->name, min);
    return err_remedy(err,
                      "use --runtime %s, or let an administrator change it with 'holt owner set "
                      "--runtime-min'",
                      min);
}

static int rules_check(const struct rules *rules, const struct runtime_ops *ops, struct err *err)
{
    int r = host_rules_check(rules, ops, err);

    return r == 0 ? owner_rules_check(rules, ops, err) : r;
}

/* Finds the first runtime that all rules allow: in the order in which the owner's are listed, or
 * else the weakest. NULL: none. */
static const struct runtime_ops *first_allowed(const struct rules *rules)
{
    const char *list = rules->ceilings.is_set[CEILING_RUNTIMES] ? rules->ceilings.runtimes : "";
    const struct runtime_ops *ops = NULL;
    struct err ignored;

    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        char name[CEILING_NAME_SIZE];

        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ","), list);
        if (runtime_find(name, &ops, &ignored) == 0 && rules_check(rules, ops, &ignored) == 0)
            return ops;
    }
    for (size_t i = 0; (ops = runtime_at(i)); i++)
        if (rules_check(rules, ops, &ignored) == 0)
            return ops;
    return NULL;
}

/* The default of a template counts where it is at least as strong as that of the host: anybody may
 * make a template. */
static int default_find(const struct host *host, const struct rules *rules,
                        const struct runtime_ops **ret, struct err *err)
{
    const struct runtime_ops *ops;
    int r;

    *ret = host->default_runtime;
    if (!*rules->template_default)
        return 0;
    r = runtime_find(rules->template_default, &ops, err);
    if (r < 0)
        return err_wrap(err, "the default runtime of the template");
    if (ops->strength >= host->default_runtime->strength)
        *ret = ops;
    return 0;
}

int host_choose_runtime(struct host *host, const struct runtime_holder *holder, const char *asked,
                        const struct runtime_ops **ret, struct err *err)
{
    const struct runtime_ops *first;
    struct rules rules;
    int r = rules_read(host, holder, &rules, err);

    if (r == 0)
        r = asked ? runtime_find(asked, ret, err) : default_find(host, &rules, ret, err);
    if (r < 0)
        return r;
    r = rules_check(&rules, *ret, err);
    if (r == 0 || asked || *ret != host->default_runtime)
        return r;
    first = first_allowed(&rules);
    if (!first)
        return r;
    *ret = first;
    return 0;
}

int host_check_runtime(struct host *host, const struct runtime_holder *holder, const char *name,
                       struct err *err)
{
    const struct runtime_ops *ops;

    return host_choose_runtime(host, holder, name, &ops, err);
}

void runtime_rules_configure(struct host *host, const struct config *config)
{
    bool is_all = strcmp(config->runtime_allow, "all") == 0;
    lock_scope(&host->lock);

    (void)snprintf(host->runtime_allow, sizeof(host->runtime_allow), "%s",
                   is_all ? "" : config->runtime_allow);
    (void)snprintf(host->runtime_min, sizeof(host->runtime_min), "%s", config->runtime_min);
}

static int allow_check(const char *list, struct err *err)
{
    const struct runtime_ops *ops;

    for (;;) {
        char name[CEILING_NAME_SIZE];
        size_t len = strcspn(list, ",");

        (void)snprintf(name, sizeof(name), "%.*s", (int)len, list);
        if (runtime_find(name, &ops, err) < 0)
            return err_wrap(err, "runtime.allow");
        if (list[len] == '\0')
            return 0;
        list += len + 1;
    }
}

int runtime_rules_check(const struct config *config, struct err *err)
{
    bool is_all = strcmp(config->runtime_allow, "all") == 0;
    const struct runtime_ops *ops;
    struct rules rules = { .owner = OWNER_ROOT };
    struct err ignored;

    if (strlen(config->runtime_allow) >= sizeof(rules.allow))
        return err_set(err, ERR_INVALID, "runtime.allow is too long");
    if (!is_all && allow_check(config->runtime_allow, err) < 0)
        return -err->errnum;
    if (runtime_find(config->runtime_min, &ops, err) < 0)
        return err_wrap(err, "runtime.min");
    (void)snprintf(rules.allow, sizeof(rules.allow), "%s", is_all ? "" : config->runtime_allow);
    (void)snprintf(rules.min, sizeof(rules.min), "%s", config->runtime_min);
    for (size_t i = 0; (ops = runtime_at(i)); i++)
        if (host_rules_check(&rules, ops, &ignored) == 0)
            return 0;
    (void)err_set(err, ERR_INVALID,
                  "runtime.allow = %.80s has no runtime that is as strong as runtime.min = %s",
                  config->runtime_allow, config->runtime_min);
    return err_remedy(err, "add one to runtime.allow, or lower runtime.min");
}

static int runtime_name_check(const char *name, struct err *err)
{
    const struct runtime_ops *ops;

    return *name ? runtime_find(name, &ops, err) : 0;
}

int template_runtime_check(const char *runtime, const char *runtime_min, struct err *err)
{
    int r = runtime_name_check(runtime, err);

    return r == 0 ? runtime_name_check(runtime_min, err) : r;
}

static void setting_put(json_t *object, const char *field, const char *value)
{
    if (*value)
        (void)json_object_set_new(object, field, json_string(value));
    else
        (void)json_object_del(object, field);
}

int template_runtime_write(struct host *host, const char *store_name, const char *runtime,
                           const char *runtime_min, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL },
                                                                  new = { .object = NULL };
    cleanup_json json_t *object = NULL;
    int r = template_runtime_check(runtime, runtime_min, err);

    if (r == 0)
        r = template_settings_read(host->store, store_name, &old, err);
    if (r < 0)
        return r;
    object = json_deep_copy(old.object);
    setting_put(object, "runtime", runtime);
    setting_put(object, "runtimeMin", runtime_min);
    r = template_settings_parse(object, &new, err);
    return r == 0 ? template_settings_write(host->store, store_name, &new, err) : r;
}
