// SPDX-License-Identifier: Apache-2.0
#include "cli/options/network_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "holt.h"

int network_set_mode(struct network_options *options, const char *value, struct err *err)
{
    if (strcmp(value, "none") != 0 && strcmp(value, "open") != 0 && strcmp(value, "allow") != 0)
        return err_set(err, ERR_INVALID, "--net '%.40s' is not none, open or allow", value);
    free(options->mode);
    options->mode = xstrdup(value);
    return 0;
}

int network_add_allow(struct network_options *options, const char *value, struct err *err)
{
    (void)err;
    words_add(&options->allow, value);
    return 0;
}

int network_add_deny(struct network_options *options, const char *value, struct err *err)
{
    (void)err;
    words_add(&options->deny, value);
    return 0;
}

int network_add_model(struct network_options *options, const char *value, struct err *err)
{
    (void)err;
    words_add(&options->models, value);
    return 0;
}

static int line_add(struct network_options *options, char *line, struct err *err)
{
    char *word = line + strspn(line, " \t");
    size_t len = strcspn(word, " \t");
    char *value = word + len;

    if (*word == '\0' || *word == '#')
        return 0;
    value += strspn(value, " \t");
    word[len] = '\0';
    for (char *end = value + strlen(value); end > value && strchr(" \t\r", end[-1]);)
        *--end = '\0';
    if (strcmp(word, "mode") == 0)
        return network_set_mode(options, value, err);
    if (strcmp(word, "allow") == 0)
        return network_add_allow(options, value, err);
    if (strcmp(word, "deny") == 0)
        return network_add_deny(options, value, err);
    if (strcmp(word, "model") == 0)
        return network_add_model(options, value, err);
    if (strcmp(word, "proxy") == 0) {
        free(options->proxy);
        options->proxy = xstrdup(value);
        return 0;
    }
    return err_set(err, ERR_INVALID, "'%.40s' is not mode, allow, deny, model or proxy", word);
}

static void file_close(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}

int network_add_file(struct network_options *options, const char *path, struct err *err)
{
    cleanup_with(file_close) FILE *file = fopen(path, "re");
    cleanup_free char *line = NULL;
    unsigned number = 0;
    size_t room = 0;

    if (!file)
        return err_sys(err, -errno, "open the --net-file '%.150s'", path);
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        number++;
        if (line_add(options, line, err) < 0)
            return err_wrap(err, "%.150s:%u", path, number);
    }
    return 0;
}

const struct holt_network_rules *network_rules(const struct network_options *options,
                                               struct holt_network_rules *room)
{
    *room = (struct holt_network_rules){ .mode = options->mode,
                                         .allow = (const char *const *)options->allow.items,
                                         .deny = (const char *const *)options->deny.items };
    return room->mode || room->allow || room->deny ? room : NULL;
}

void network_options_done(struct network_options *options)
{
    free(options->mode);
    words_done(&options->allow);
    words_done(&options->deny);
    words_done(&options->models);
    free(options->proxy);
}
