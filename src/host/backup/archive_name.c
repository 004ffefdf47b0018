// SPDX-License-Identifier: Apache-2.0
#include "host/backup/archive_name.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/template/template.h"

enum { DESCRIPTION_VERSION = 1 };

void archive_pause_name(const char *sandbox, const char *mark,
                        char ret[static ARCHIVE_NAME_MAX + 1])
{
    (void)snprintf(ret, ARCHIVE_NAME_MAX + 1, ARCHIVE_PAUSES "%s/%s", sandbox, mark);
}

/* Committed templates are layers above another one. */
static int template_is_of_host(struct store *store, const char *name, bool *ret, struct err *err)
{
    struct template_info info = { .name = "" };
    int r;

    (void)snprintf(info.base, sizeof(info.base), "%s", name);
    do {
        char base[TEMPLATE_NAME_MAX + 1];

        memcpy(base, info.base, sizeof(base));
        r = template_get_info(store, base, &info, err);
        if (r < 0)
            return r;
    } while (!info.is_host && info.base[0]);
    *ret = info.is_host;
    return 0;
}

int archive_omitted_template(const struct sandbox *sandbox, char **ret, struct err *err)
{
    const char *name = sandbox->info.template;
    struct host *host = sandbox->host;
    struct template_record record;
    bool is_omitted = false;
    struct err ignored;
    int r = template_is_of_host(host->store, name, &is_omitted, err);

    if (r < 0)
        return r;
    if (!is_omitted)
        *ret = xstrdup("");
    else if (registry_get_template(host->registry, name, &record, &ignored) == 1)
        *ret = xstrdup(record.name);
    else
        *ret = xstrdup(name);
    return 0;
}

char *archive_describe(struct sandbox *sandbox, const char *host, const char *template,
                       const char *snapshot)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_json json_t *description = NULL;

    sandbox_get_info(sandbox, false, &info);
    description = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "version", DESCRIPTION_VERSION,
                            "sandbox", info.id, "name", info.name, "template", template, "host",
                            host, "snapshot", snapshot ? snapshot : "");
    return description ? json_dumps(description, JSON_COMPACT) : NULL;
}

json_t *archive_description_parse(const char *text)
{
    static const char *const members[] = { "sandbox", "name", "template", "host", "snapshot" };
    json_t *object = json_loads(text, 0, NULL);
    bool is_known = json_integer_value(json_object_get(object, "version")) == DESCRIPTION_VERSION;

    for (size_t i = 0; is_known && i < ARRAY_SIZE(members); i++)
        is_known = json_is_string(json_object_get(object, members[i]));
    if (is_known)
        return object;
    json_decref(object);
    return NULL;
}
