// SPDX-License-Identifier: Apache-2.0
#include "auth/session_row.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/hex.h"

#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", from)

static int scope_write(const struct caller *caller, char ret[SESSION_SCOPE_BYTES], struct err *err)
{
    cleanup_json json_t *scope = json_object();
    size_t len;

    for (size_t i = 0; i < caller->scope_count; i++)
        (void)json_object_set_new(scope, caller->scope[i].key, json_text(caller->scope[i].value));
    len = json_dumpb(scope, ret, SESSION_SCOPE_BYTES - 1, JSON_COMPACT);
    if (len == 0 || len >= SESSION_SCOPE_BYTES)
        return err_set(err, ERR_INTERNAL, "the labels of the token do not fit a session");
    ret[len] = '\0';
    return 0;
}

static bool scope_read(const char *text, struct caller *ret)
{
    cleanup_json json_t *scope = NULL;
    struct err ignored;
    const char *key;
    json_t *value;

    if (json_parse_object(text, strlen(text), &scope, &ignored) < 0 ||
        json_object_size(scope) > CALLER_SCOPE_MAX)
        return false;
    json_object_foreach(scope, key, value) {
        struct label *label = &ret->scope[ret->scope_count++];

        if (!json_is_string(value))
            return false;
        COPY(label->key, key);
        COPY(label->value, json_string_value(value));
    }
    return true;
}

int session_data_write(const struct session_data *data, struct session_row *ret, struct err *err)
{
    const struct session_info *info = &data->info;
    const struct caller *caller = &info->login.caller;

    COPY(ret->id, info->id);
    COPY(ret->owner, caller->owner);
    COPY(ret->role, role_name(caller->role));
    COPY(ret->token, caller->token);
    COPY(ret->main_mark, data->main_mark);
    COPY(ret->address, info->address);
    COPY(ret->agent, info->agent);
    hex_encode(data->cookie_hash, sizeof(data->cookie_hash), ret->cookie_hash);
    hex_encode(data->key_hash, sizeof(data->key_hash), ret->key_hash);
    ret->created_ms = info->created_ms;
    ret->expires_ms = info->expires_ms;
    COPY(ret->sandbox, info->login.preview.sandbox);
    ret->port = info->login.preview.port;
    COPY(ret->parent, data->parent);
    return scope_write(caller, ret->scope, err);
}

bool session_data_read(const struct session_row *row, struct session_data *ret)
{
    struct session_info *info = &ret->info;
    struct caller *caller = &info->login.caller;

    *ret = (struct session_data){ .info.created_ms = row->created_ms,
                                  .info.expires_ms = row->expires_ms,
                                  .info.login.is_main = row->main_mark[0] != '\0',
                                  .info.login.preview.port = (uint16_t)row->port };
    COPY(info->id, row->id);
    COPY(caller->owner, row->owner);
    COPY(caller->token, row->token);
    COPY(ret->main_mark, row->main_mark);
    COPY(info->address, row->address);
    COPY(info->agent, row->agent);
    COPY(info->login.preview.sandbox, row->sandbox);
    COPY(ret->parent, row->parent);
    return row->id[0] == 's' && strncmp(row->id + 1, row->cookie_hash, SESSION_ID_LEN - 1) == 0 &&
           role_parse(row->role, &caller->role) && scope_read(row->scope, caller) &&
           hex_decode(row->cookie_hash, ret->cookie_hash, sizeof(ret->cookie_hash)) &&
           hex_decode(row->key_hash, ret->key_hash, sizeof(ret->key_hash));
}

void session_agent_copy(const char *agent, char ret[SESSION_AGENT_MAX + 1])
{
    (void)snprintf(ret, SESSION_AGENT_MAX + 1, "%s", agent ? agent : "");
    for (char *at = ret; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}
