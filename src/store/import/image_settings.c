// SPDX-License-Identifier: Apache-2.0
/* The configuration of an image as settings of a template (store/template/settings.h). */
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "store/import/image_internal.h"
#include "store/template/settings.h"

/* "NAME=value" words as an object; what is no variable is dropped. */
static json_t *variables_of(const json_t *words)
{
    json_t *env = json_object();
    const json_t *word;
    size_t i;

    json_array_foreach(words, i, word) {
        const char *text = json_string_value(word), *equals = text ? strchr(text, '=') : NULL;

        if (equals && equals != text)
            (void)json_object_setn_new(env, text, (size_t)(equals - text), json_string(equals + 1));
    }
    return env;
}

/* Entrypoint and Cmd are one command, as Docker starts it. */
static json_t *command_of(const json_t *config)
{
    static const char *const parts[] = { "Entrypoint", "Cmd" };
    json_t *command = json_array();
    json_t *word;
    size_t at;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        json_array_foreach(json_object_get(config, parts[i]), at, word) {
            if (json_is_string(word))
                (void)json_array_append(command, word);
        }
    }
    return command;
}

/* What sandboxes do not act on is kept for clients. */
static json_t *facts_of(const json_t *config)
{
    static const struct {
        const char *from, *to;
    } facts[] = {
        { "ExposedPorts", "exposedPorts" },
        { "Volumes", "volumes" },
        { "Labels", "labels" },
        { "Healthcheck", "healthcheck" },
        { "StopSignal", "stopSignal" },
        { "Shell", "shell" },
        { "Entrypoint", "entrypoint" },
        { "Cmd", "cmd" },
    };
    json_t *image = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        json_t *value = json_object_get(config, facts[i].from);

        if (value && !json_is_null(value))
            (void)json_object_set(image, facts[i].to, value);
    }
    return image;
}

int image_config_settings(const json_t *document, struct template_settings *ret, struct err *err)
{
    const json_t *config = json_object_get(document, "config");
    cleanup_json json_t *object = NULL;
    const char *workdir = "", *user = "";

    if (config && (json_get_text(config, "WorkingDir", &workdir, err) < 0 ||
                   json_get_text(config, "User", &user, err) < 0))
        return err_wrap(err, "image configuration");
    object =
        json_pack("{s:o, s:s, s:s, s:o, s:o}", "env", variables_of(json_object_get(config, "Env")),
                  "workdir", *workdir == '/' ? workdir : "", "user", user, "command",
                  command_of(config), "image", facts_of(config));
    if (!object)
        return err_set(err, ERR_INVALID, "image configuration: a text is not UTF-8");
    return template_settings_parse(object, ret, err);
}

int image_settings(int image_fd, const char *digest, struct template_settings *ret, struct err *err)
{
    cleanup_json json_t *document = NULL;
    int r = image_config_read(image_fd, digest, &document, err);

    return r < 0 ? r : image_config_settings(document, ret, err);
}
