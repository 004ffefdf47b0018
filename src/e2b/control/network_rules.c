// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/network_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_owner.h"
#include "e2b/core/object_store.h"
#include "host/secret/header.h"
#include "http/exchange.h"
#include "net/policy.h"

#define REFERENCE "${e2b."
#define SECRET_REFERENCE REFERENCE "secrets."
#define HIDDEN "(hidden)"

/* Where the headers of one host go. */
struct rules_target {
    const struct e2b_request *request;
    const char *owner; /* of the sandbox */
    const char *host;
    json_t *list;
};

static int secret_find(const struct rules_target *target, const char *name, char **ret_id,
                       struct err *err)
{
    cleanup_json json_t *all = e2b_objects_list(target->request->e2b->objects, OBJECTS_SECRETS);
    const json_t *found = e2b_object_pick(all, &target->request->exchange->caller, "name", name);

    if (!found || strcmp(e2b_object_owner(found), target->owner) != 0)
        return err_set(err, ERR_INVALID,
                       "network.rules names secret '%.100s', which does not exist", name);
    *ret_id = xstrdup(json_string_value(json_object_get(found, "id")));
    return 0;
}

/* Reads "PREFIX${e2b.secrets.NAME}SUFFIX". */
static int reference_add(const struct rules_target *target, struct secret_header *header,
                         const char *text, struct err *err)
{
    const char *at = strstr(text, REFERENCE), *end = strchr(at, '}');
    cleanup_free char *name = NULL, *template = NULL, *id = NULL;
    const size_t prefix = strlen(SECRET_REFERENCE);
    int r;

    if (!end || strncmp(at, SECRET_REFERENCE, prefix) != 0 || strstr(end, REFERENCE))
        return err_set(err, ERR_INVALID,
                       "header '%.60s' of network.rules may name one secret, as "
                       "'" SECRET_REFERENCE "NAME}', and nothing else of E2B",
                       header->name);
    name = xasprintf("%.*s", (int)(end - at - (long)prefix), at + prefix);
    template = xasprintf("%.*s{}%s", (int)(at - text), text, end + 1);
    r = secret_find(target, name, &id, err);
    if (r < 0)
        return r;
    header->template = template;
    header->secret = id;
    return secret_header_add(target->request->host, target->owner, header, target->list, err);
}

/* A scheme such as "Bearer " is no part of the value, so that replies are searched for the rest. */
static int literal_add(const struct rules_target *target, struct secret_header *header,
                       const char *text, struct err *err)
{
    const char *blank = strrchr(text, ' ');
    cleanup_free char *template = NULL;

    if (blank && strstr(text, "{}"))
        blank = NULL;
    header->value = blank ? blank + 1 : text;
    template = xasprintf("%.*s{}", (int)(header->value - text), text);
    header->template = template;
    return secret_header_add(target->request->host, target->owner, header, target->list, err);
}

static int headers_add(const struct rules_target *target, const json_t *headers, struct err *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)headers, name, value) {
        struct secret_header header = { .host = target->host, .name = name };
        const char *text = json_string_value(value);

        if (!text)
            return err_set(err, ERR_INVALID, "header '%.60s' of network.rules must be a text",
                           name);
        r = strstr(text, REFERENCE) ? reference_add(target, &header, text, err)
                                    : literal_add(target, &header, text, err);
        if (r < 0)
            return err_wrap(err, "network.rules of '%.80s'", target->host);
    }
    return 0;
}

/* Of two rules of a host that set the same header, the later one counts. */
static int host_add(const struct rules_target *target, const json_t *rules, struct err *err)
{
    int r = json_is_array(rules)
                ? 0
                : err_set(err, ERR_INVALID, "network.rules of '%.80s' is no list", target->host);

    for (size_t i = 0; r == 0 && i < json_array_size(rules); i++) {
        const json_t *transform = NULL, *headers = NULL, *rule = json_array_get(rules, i);

        r = json_is_object(rule)
                ? json_get_object(rule, "transform", &transform, err)
                : err_set(err, ERR_INVALID, "a rule of '%.80s' is no object", target->host);
        if (r == 0 && transform)
            r = json_get_object(transform, "headers", &headers, err);
        if (r == 0 && headers)
            r = headers_add(target, headers, err);
    }
    return r;
}

int e2b_rules_fill(const struct e2b_request *request, const char *owner, const json_t *rules,
                   struct net_layer *layer, struct err *err)
{
    cleanup_json json_t *list = json_array();
    struct rules_target target = { .request = request, .owner = owner, .list = list };
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)rules, target.host, value) {
        r = host_add(&target, value, err);
        if (r < 0)
            return r;
    }
    if (json_array_size(list) > 0)
        net_layer_set_headers(layer, list);
    return 0;
}

/* Only what is understood is kept: other fields might have keys as well. */
static json_t *rule_shown(const json_t *rule)
{
    const json_t *headers = json_object_get(json_object_get(rule, "transform"), "headers");
    json_t *shown = json_object(), *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)headers, name, value) {
        const char *text = json_string_value(value);

        (void)json_object_set_new(
            shown, name, json_string(text && strstr(text, SECRET_REFERENCE) ? text : HIDDEN));
    }
    return json_pack("{s:{s:o}}", "transform", "headers", shown);
}

json_t *e2b_rules_shown(const json_t *rules)
{
    json_t *shown = json_object(), *list, *rule;
    const char *host;
    size_t index;

    json_object_foreach((json_t *)(uintptr_t)rules, host, list) {
        json_t *copy = json_array();

        json_array_foreach(list, index, rule) {
            (void)json_array_append_new(copy, rule_shown(rule));
        }
        (void)json_object_set_new(shown, host, copy);
    }
    return shown;
}
