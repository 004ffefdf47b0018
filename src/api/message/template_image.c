// SPDX-License-Identifier: Apache-2.0
#include "api/message/template_image.h"

#include <jansson.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/host.h"
#include "store/template/settings.h"
#include "store/template/template.h"

/* Copies the texts of an array; what is no text is dropped. */
static const char *const *texts_take(const json_t *array, struct arena *arena, size_t *ret_count)
{
    const char **texts = arena_take(arena, json_array_size(array) + 1, sizeof(*texts));
    const json_t *each;
    size_t i, count = 0;

    json_array_foreach(array, i, each) {
        if (json_is_string(each))
            texts[count++] = arena_copy_text(arena, json_string_value(each));
    }
    *ret_count = count;
    return texts;
}

/* Copies the names of an object's fields, as images write sets. */
static const char *const *names_take(const json_t *object, struct arena *arena, size_t *ret_count)
{
    const char **texts = arena_take(arena, json_object_size(object) + 1, sizeof(*texts));
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
        texts[count++] = arena_copy_text(arena, name);
    *ret_count = count;
    return texts;
}

static const struct pair *labels_take(const json_t *object, struct arena *arena, size_t *ret_count)
{
    struct pair *pairs = arena_take(arena, json_object_size(object) + 1, sizeof(*pairs));
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if (json_is_string(value))
            pairs[count++] = (struct pair){ arena_copy_text(arena, name),
                                            arena_copy_text(arena, json_string_value(value)) };
    }
    *ret_count = count;
    return pairs;
}

static const struct msg_image_settings *image_take(const struct template_settings *settings,
                                                   struct arena *arena)
{
    struct msg_image_settings *image = arena_take(arena, 1, sizeof(*image));
    const char *stop_signal = json_string_value(json_object_get(settings->image, "stopSignal"));
    const json_t *check = json_object_get(settings->image, "healthcheck");

    image->user = arena_copy_text(arena, settings->user);
    image->workdir = arena_copy_text(arena, settings->workdir);
    image->stop_signal = arena_copy_text(arena, stop_signal ? stop_signal : "");
    image->ports =
        names_take(json_object_get(settings->image, "exposedPorts"), arena, &image->ports_count);
    image->volumes =
        names_take(json_object_get(settings->image, "volumes"), arena, &image->volumes_count);
    image->labels =
        labels_take(json_object_get(settings->image, "labels"), arena, &image->labels_count);
    image->healthcheck =
        texts_take(json_object_get(check, "Test"), arena, &image->healthcheck_count);
    return image;
}

void template_image_fill(struct host *host, const char *store_name, struct arena *arena,
                         struct msg_template *ret)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    struct err ignored;

    if (strcmp(store_name, TEMPLATE_HOST) == 0 ||
        template_settings_read(host_store(host), store_name, &settings, &ignored) < 0)
        return;
    ret->command = texts_take(settings.command, arena, &ret->command_count);
    if (settings.image)
        ret->image = image_take(&settings, arena);
}
