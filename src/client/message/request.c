// SPDX-License-Identifier: Apache-2.0
#include "client/message/request.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "client/error.h"
#include "holt.h"

static bool is_utf8(const char *text)
{
    return !text || utf8_valid(text, strlen(text)) == strlen(text);
}

static bool pairs_are_utf8(const struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_utf8(pairs[i].key) || !is_utf8(pairs[i].value))
            return false;
    return true;
}

static bool texts_are_utf8(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_utf8(texts[i]))
            return false;
    return true;
}

static int request_check(const struct schema *schema, const char *request,
                         struct holt_error *error);

static int messages_check(const struct schema_field *field, const char *request,
                          struct holt_error *error)
{
    const char *messages = *(const char *const *)(const void *)(request + field->offset);
    size_t count = messages ? 1 : 0;
    const struct schema *schema = field->of;

    if (field->flags & FIELD_LIST)
        count = *(const size_t *)(const void *)(request + field->aux);
    for (size_t i = 0; messages && i < count; i++)
        if (request_check(schema, messages + i * schema->size, error) < 0)
            return -1;
    return 0;
}

static bool field_is_utf8(const struct schema_field *field, const char *request)
{
    const void *value = request + field->offset;

    if (field->kind == FIELD_PAIRS)
        return pairs_are_utf8(*(const struct pair *const *)value,
                              *(const size_t *)(const void *)(request + field->aux));
    if (field->kind == FIELD_TEXT && (field->flags & FIELD_LIST))
        return texts_are_utf8(*(const char *const *const *)value,
                              *(const size_t *)(const void *)(request + field->aux));
    return field->kind != FIELD_TEXT || is_utf8(*(const char *const *)value);
}

static bool is_missing(const struct schema_field *field, const char *request)
{
    return field->kind == FIELD_TEXT && (field->flags & FIELD_REQUIRED) &&
           !(field->flags & FIELD_LIST) &&
           !*(const char *const *)(const void *)(request + field->offset);
}

static int request_check(const struct schema *schema, const char *request, struct holt_error *error)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct schema_field *field = &schema->fields[i];

        if (is_missing(field, request))
            return error_set(error, "invalid_argument", "argument '%s' is missing",
                             field->json_name);
        if (!field_is_utf8(field, request))
            return error_set(error, "invalid_argument", "argument '%s' is not UTF-8",
                             field->json_name);
        if (field->kind == FIELD_MESSAGE && messages_check(field, request, error) < 0)
            return -1;
    }
    return 0;
}

int request_encode(const struct schema *schema, const void *request, struct buf *out,
                   struct holt_error *error)
{
    if (request_check(schema, request, error) < 0)
        return -1;
    if (schema_encode(schema, request, ENCODE_SOME, out) < 0)
        return error_set(error, "resource_exhausted", "no memory for the request");
    return 0;
}

size_t request_count(const char *const *texts)
{
    size_t count = 0;

    while (texts && texts[count])
        count++;
    return count;
}

static void pair_set(struct pair *pairs, size_t *count, const char *key, const char *value)
{
    size_t i = 0;

    while (i < *count && strcmp(pairs[i].key, key) != 0)
        i++;
    pairs[i] = (struct pair){ key, value };
    if (i == *count)
        ++*count;
}

int request_pairs(struct arena *arena, const char *const *texts, const struct pair **ret,
                  size_t *ret_count, struct holt_error *error)
{
    struct pair *pairs = arena_take(arena, request_count(texts) + 1, sizeof(*pairs));

    *ret = pairs;
    *ret_count = 0;
    for (; texts && *texts; texts++) {
        const char *equals = strchr(*texts, '=');
        size_t len = equals ? (size_t)(equals - *texts) : 0;
        char *key;

        if (!equals)
            return error_set(error, "invalid_argument", "'%.100s' is not name=value", *texts);
        key = arena_take(arena, len + 1, 1);
        memcpy(key, *texts, len);
        pair_set(pairs, ret_count, key, equals + 1);
    }
    return 0;
}

int request_process_set(struct request_process *ret, const struct holt_command *command,
                        bool has_stdin, struct arena *arena, struct holt_error *error)
{
    *ret = (struct request_process){
        .spec = { .args = command->args,
                  .args_count = request_count(command->args),
                  .cwd = command->cwd,
                  .stdin = has_stdin,
                  .timeout_ms = command->timeout_ms,
                  .tag = command->tag,
                  .user = command->user,
                  .tier = command->tier },
        .terminal = { .rows = command->rows, .columns = command->columns },
    };
    if (command->rows && command->columns)
        ret->spec.terminal = &ret->terminal;
    return request_pairs(arena, command->env, &ret->spec.env, &ret->spec.env_count, error);
}

struct msg_limits request_limits(const struct holt_sandbox_options *options)
{
    return (struct msg_limits){
        .memory_bytes = options->memory_bytes,
        .cpu_millis = options->cpu_millis,
        .pids = options->pids,
        .files = options->files,
    };
}

const struct msg_network_policy *request_network(const struct holt_network_rules *rules,
                                                 const char *proxy, const char *const *models,
                                                 struct msg_network_policy *room)
{
    static const struct holt_network_rules none = { .mode = NULL };

    if (!rules)
        rules = &none;
    if (!rules->mode && !rules->allow && !rules->deny && !proxy && !models)
        return NULL;
    *room = (struct msg_network_policy){ .mode = rules->mode,
                                         .allow = rules->allow,
                                         .allow_count = request_count(rules->allow),
                                         .deny = rules->deny,
                                         .deny_count = request_count(rules->deny),
                                         .proxy = proxy,
                                         .models = models,
                                         .models_count = request_count(models) };
    return room;
}
