// SPDX-License-Identifier: Apache-2.0
/* The ceilings in holt.conf: owner.NAME.CEILING, and owner.*.CEILING for every owner but root. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "host/owner/ceiling.h"

static struct owner_setting *setting_find(const struct owner_settings *settings, const char *owner)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->items[i].owner, owner) == 0)
            return &settings->items[i];
    return NULL;
}

const struct ceilings *owner_settings_find(const struct owner_settings *settings, const char *owner)
{
    const struct owner_setting *setting = setting_find(settings, owner);

    return setting ? &setting->ceilings : NULL;
}

static void items_resize(struct owner_settings *settings, size_t count)
{
    struct owner_setting *items = xcalloc(count, sizeof(*items));

    if (settings->count > 0)
        memcpy(items, settings->items, settings->count * sizeof(*items));
    free(settings->items);
    settings->items = items;
    settings->count = count;
}

int owner_settings_set(struct owner_settings *settings, const char *key, const char *value,
                       struct err *err)
{
    const char *dot = strrchr(key, '.');
    char owner[OWNER_NAME_MAX + 1];
    struct owner_setting *setting;
    enum ceiling which;

    if (!dot || dot == key || (size_t)(dot - key) >= sizeof(owner) ||
        !ceiling_find(dot + 1, &which))
        return err_set(err, ERR_INVALID, "unknown key 'owner.%.100s'", key);
    (void)snprintf(owner, sizeof(owner), "%.*s", (int)(dot - key), key);
    if (strcmp(owner, OWNER_EVERY) != 0 && owner_check_name(owner, err) < 0)
        return -err->errnum;
    setting = setting_find(settings, owner);
    if (!setting) {
        items_resize(settings, settings->count + 1);
        setting = &settings->items[settings->count - 1];
        memcpy(setting->owner, owner, sizeof(setting->owner));
    }
    return ceiling_parse(&setting->ceilings, which, value, err);
}

void owner_settings_copy(const struct owner_settings *settings, struct owner_settings *ret)
{
    *ret = (struct owner_settings){ .items = NULL };
    if (settings->count == 0)
        return;
    ret->items = xcalloc(settings->count, sizeof(*ret->items));
    memcpy(ret->items, settings->items, settings->count * sizeof(*ret->items));
    ret->count = settings->count;
}

bool owner_settings_equal(const struct owner_settings *one, const struct owner_settings *other)
{
    char a[CEILING_TEXT_SIZE], b[CEILING_TEXT_SIZE];

    if (one->count != other->count)
        return false;
    for (size_t i = 0; i < one->count; i++) {
        const struct ceilings *old = &one->items[i].ceilings;
        const struct ceilings *new = owner_settings_find(other, one->items[i].owner);

        for (enum ceiling which = 0; new &&which < CEILINGS; which++) {
            ceiling_format(old, which, a);
            ceiling_format(new, which, b);
            if (old->is_set[which] != new->is_set[which] || strcmp(a, b) != 0)
                return false;
        }
        if (!new)
            return false;
    }
    return true;
}

void owner_settings_print(const struct owner_settings *settings, FILE *out)
{
    char text[CEILING_TEXT_SIZE];

    for (size_t i = 0; i < settings->count; i++) {
        const struct owner_setting *setting = &settings->items[i];

        (void)fprintf(out, "\n# ceilings of %s (reload)\n",
                      strcmp(setting->owner, OWNER_EVERY) == 0 ? "every owner but root"
                                                               : "one owner");
        for (enum ceiling which = 0; which < CEILINGS; which++) {
            if (!setting->ceilings.is_set[which])
                continue;
            ceiling_format(&setting->ceilings, which, text);
            (void)fprintf(out, "owner.%s.%s = %s\n", setting->owner, ceiling_name(which), text);
        }
    }
}

void owner_settings_done(struct owner_settings *settings)
{
    free(settings->items);
    *settings = (struct owner_settings){ .items = NULL };
}
