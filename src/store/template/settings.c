// SPDX-License-Identifier: Apache-2.0
/* templates/NAME/settings.json, in the format of template_settings_parse. */
#include "store/template/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "kernel/path.h"
#include "store/store_internal.h"

#define FILE_NAME "settings.json"
#define MEMORY_BYTES_MAX (1ULL << 50)

enum { CPUS_MAX = 4096 };

static int env_check(const json_t *env, struct err *err)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)env, name, value) {
        if (*name == '\0' || strchr(name, '='))
            return err_set(err, ERR_INVALID, "'%.64s' is not a variable name", name);
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "variable '%.64s' is not a string", name);
    }
    return 0;
}

static int command_check(const json_t *command, struct err *err)
{
    const json_t *word;
    size_t i;

    json_array_foreach(command, i, word) {
        if (!json_is_string(word))
            return err_set(err, ERR_INVALID, "word %zu of 'command' is not a string", i);
    }
    return 0;
}

int template_settings_parse(const json_t *object, struct template_settings *ret, struct err *err)
{
    static const char *const fields[] = { "env",          "workdir",     "user",    "startCommand",
                                          "readyCommand", "allowSetuid", "cpus",    "memoryBytes",
                                          "runtime",      "runtimeMin",  "network", "command",
                                          "image",        NULL };
    struct template_settings settings = { .workdir = "",
                                          .user = "",
                                          .start_command = "",
                                          .ready_command = "",
                                          .runtime = "",
                                          .runtime_min = "" };

    if (json_only_fields(object, fields, err) < 0 ||
        json_get_object(object, "env", &settings.env, err) < 0 ||
        json_get_text(object, "workdir", &settings.workdir, err) < 0 ||
        json_get_text(object, "user", &settings.user, err) < 0 ||
        json_get_text(object, "startCommand", &settings.start_command, err) < 0 ||
        json_get_text(object, "readyCommand", &settings.ready_command, err) < 0 ||
        json_get_bool(object, "allowSetuid", &settings.allows_setuid, err) < 0 ||
        json_get_u32(object, "cpus", &settings.cpus, err) < 0 ||
        json_get_u64(object, "memoryBytes", &settings.memory_bytes, err) < 0 ||
        json_get_text(object, "runtime", &settings.runtime, err) < 0 ||
        json_get_text(object, "runtimeMin", &settings.runtime_min, err) < 0 ||
        json_get_object(object, "network", &settings.network, err) < 0 ||
        json_get_array(object, "command", &settings.command, err) < 0 ||
        json_get_object(object, "image", &settings.image, err) < 0 ||
        (settings.command && command_check(settings.command, err) < 0) ||
        (settings.env && env_check(settings.env, err) < 0))
        return err_wrap(err, "settings");
    if (settings.workdir[0] != '\0' && settings.workdir[0] != '/')
        return err_set(err, ERR_INVALID, "settings: the workdir '%.100s' is not absolute",
                       settings.workdir);
    if (settings.cpus > CPUS_MAX || settings.memory_bytes > MEMORY_BYTES_MAX)
        return err_set(err, ERR_INVALID, "settings: at most %d cpus and %llu memoryBytes", CPUS_MAX,
                       MEMORY_BYTES_MAX);
    settings.object = json_incref((json_t *)(uintptr_t)object);
    *ret = settings;
    return 0;
}

void template_settings_done(struct template_settings *settings)
{
    json_decref(settings->object);
    *settings = (struct template_settings){ .object = NULL };
}

int template_settings_read_at(int template_fd, struct template_settings *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEMPLATE_SETTINGS_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    int r = file_read_at(template_fd, FILE_NAME, &text);

    if (r == -ENOENT)
        r = buf_add_str(&text, "{}");
    if (r < 0)
        return err_sys(err, r, "read " FILE_NAME);
    r = json_parse_object(text.data, text.len, &object, err);
    return r < 0 ? err_wrap(err, FILE_NAME) : template_settings_parse(object, ret, err);
}

int template_settings_write_at(int template_fd, const struct template_settings *settings,
                               struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEMPLATE_SETTINGS_BYTES_MAX);
    int r = json_write(settings->object, &text);

    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED, "settings are larger than %d bytes",
                       TEMPLATE_SETTINGS_BYTES_MAX);
    if (r >= 0)
        r = file_replace_at(template_fd, FILE_NAME, text.data, text.len);
    return r < 0 ? err_sys(err, r, "write " FILE_NAME) : 0;
}

static int template_dir(struct store *store, const char *name, struct err *err)
{
    int fd = template_is_store_name(name)
                 ? open_no_links(store->templates_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
                 : -ENOENT;

    if (fd == -ENOENT)
        return err_refuse(err, CAUSE_TEMPLATE_NOT_FOUND, "no template '%.64s'", name);
    return fd < 0 ? err_sys(err, fd, "open template '%s'", name) : fd;
}

int template_settings_read(struct store *store, const char *name, struct template_settings *ret,
                           struct err *err)
{
    cleanup_close int fd = template_dir(store, name, err);
    int r = fd < 0 ? fd : template_settings_read_at(fd, ret, err);

    return r < 0 ? err_wrap(err, "template '%.64s'", name) : 0;
}

int template_settings_write(struct store *store, const char *name,
                            const struct template_settings *settings, struct err *err)
{
    cleanup_close int fd = template_dir(store, name, err);
    int r = fd < 0 ? fd : template_settings_write_at(fd, settings, err);

    template_forget_open(store, name);
    return r < 0 ? err_wrap(err, "template '%.64s'", name) : 0;
}
