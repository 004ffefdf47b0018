// SPDX-License-Identifier: Apache-2.0
#include "host/image/defaults.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "store/template/template.h"

static size_t words_count(char *const *words)
{
    size_t count = 0;

    while (words && words[count])
        count++;
    return count;
}

/* The variables of the image come first: those of the spec replace them. */
static void env_merge(struct image_defaults *defaults)
{
    size_t image_count, count = words_count(defaults->spec.env);

    defaults->image_env = json_words(defaults->settings.env);
    image_count = words_count(defaults->image_env);
    defaults->env = xcalloc(image_count + count + 1, sizeof(*defaults->env));
    if (image_count > 0)
        memcpy(defaults->env, defaults->image_env, image_count * sizeof(*defaults->env));
    if (count > 0)
        memcpy(defaults->env + image_count, defaults->spec.env, count * sizeof(*defaults->env));
    defaults->spec.env = defaults->env;
}

/* USER or USER:GROUP. Without a user, a process is one of root with Holt's own defaults. */
static void user_set(struct image_defaults *defaults)
{
    char *user = xstrdup(defaults->settings.user);
    char *colon = strchr(user, ':');
    bool has_group = colon && colon[1];

    defaults->user = user;
    if (colon)
        *colon = '\0';
    if (has_group)
        defaults->spec.group = colon + 1;
    if (*user && strcmp(user, "root") != 0 && strcmp(user, "0") != 0)
        defaults->spec.user = user;
    else if (has_group)
        defaults->spec.user = "0";
}

void image_defaults_take(struct host *host, const char *template, const struct process_spec *spec,
                         struct image_defaults *ret)
{
    struct err ignored;

    *ret = (struct image_defaults){ .spec = *spec };
    if (strcmp(template, TEMPLATE_HOST) == 0 ||
        template_settings_read(host->store, template, &ret->settings, &ignored) < 0 ||
        !ret->settings.image)
        return;
    env_merge(ret);
    if (!spec->cwd && *ret->settings.workdir)
        ret->spec.cwd = ret->settings.workdir;
    if (!spec->user)
        user_set(ret);
}

void image_defaults_done(struct image_defaults *defaults)
{
    json_words_free(&defaults->image_env);
    free(defaults->env);
    free(defaults->user);
    template_settings_done(&defaults->settings);
}
