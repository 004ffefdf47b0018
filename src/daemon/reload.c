// SPDX-License-Identifier: Apache-2.0
#include "daemon/reload.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/command_line.h"
#include "daemon/notify.h"
#include "host/core/host.h"
#include "host/observe/event.h"

void reload_log_level(const char *name)
{
    static const char *const names[] = {
        [LOG_ERROR] = "error",
        [LOG_WARN] = "warn",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            log_set_level((enum log_level)i);
}

/* The changed keys, by their effect. */
struct changes {
    json_t *applied, *restart;
};

static void changes_add(void *context, const char *key, bool is_live)
{
    struct changes *changes = context;

    (void)json_array_append_new(is_live ? changes->applied : changes->restart, json_string(key));
}

static void log_keys(const json_t *keys, const char *what)
{
    for (size_t i = 0; i < json_array_size(keys); i++)
        log_info("reload: %s %s", json_string_value(json_array_get(keys, i)), what);
}

static int reload_apply(struct command_line *line, struct command_line *again, struct host *host,
                        struct err *err)
{
    struct changes changes = { json_array(), json_array() };
    int r = host_reload(host, &again->config, err);

    if (r == 0) {
        config_compare(&line->config, &again->config, changes_add, &changes);
        config_take_live(&line->config, &again->config);
        reload_log_level(line->config.log);
        log_info("reload: the configuration was read again");
        log_keys(changes.applied, "has changed");
        log_keys(changes.restart, "has changed and needs a restart");
        host_event(
            host, EVENT_CONFIG_RELOADED,
            json_pack("{s:O, s:O}", "changed", changes.applied, "needRestart", changes.restart));
    }
    json_decref(changes.applied);
    json_decref(changes.restart);
    return r;
}

void reload(int argc, char *const *argv, struct command_line *line, struct host *host)
{
    struct command_line again;
    struct err err = { 0 };
    int r;

    notify_systemd("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns() / NS_PER_US);
    r = command_line_read_again(argc, argv, &again, &err);
    if (r == 0)
        r = reload_apply(line, &again, host, &err);
    command_line_done(&again);
    if (r < 0) {
        log_error("reload: the configuration is unchanged: %s", err.msg);
        host_event(host, EVENT_CONFIG_REFUSED, json_pack("{s:o}", "reason", json_text(err.msg)));
    }
    notify_systemd("READY=1\nSTATUS=%s%.200s",
                   r < 0 ? "the new configuration was refused: " : "Ready", r < 0 ? err.msg : "");
}
