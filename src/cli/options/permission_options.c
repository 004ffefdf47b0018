// SPDX-License-Identifier: Apache-2.0
#include "cli/options/permission_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "holt.h"

int permission_add(struct permission_options *options, const char *value, struct err *err)
{
    (void)err;
    words_add(&options->rules, value);
    return 0;
}

static void file_close(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}

int permission_add_file(struct permission_options *options, const char *path, struct err *err)
{
    cleanup_with(file_close) FILE *file = fopen(path, "re");
    cleanup_free char *line = NULL;
    size_t room = 0;

    if (!file)
        return err_sys(err, -errno, "open the --perm-file '%.150s'", path);
    while (getline(&line, &room, file) >= 0) {
        char *rule = line + strspn(line, " \t");

        for (char *end = rule + strlen(rule); end > rule && strchr(" \t\r\n", end[-1]);)
            *--end = '\0';
        if (*rule != '\0' && *rule != '#')
            words_add(&options->rules, rule);
    }
    return 0;
}

const struct holt_permission_rules *permission_rules(const struct permission_options *options,
                                                     struct holt_permission_rules *room)
{
    *room = (struct holt_permission_rules){ .preset = options->preset,
                                            .rules = (const char *const *)options->rules.items,
                                            .view = options->view };
    return room->preset || room->rules || room->view ? room : NULL;
}

void permission_options_done(struct permission_options *options)
{
    words_done(&options->rules);
}
