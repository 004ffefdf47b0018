// SPDX-License-Identifier: Apache-2.0
#include "host/secret/use.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "ssh/public.h"

enum { HTTPS_PORT = 443, PORT_MAX = 65535 };

static const char *const place_names[SECRET_PLACES] = {
    [SECRET_IN_HEADER] = "header", [SECRET_IN_QUERY] = "query", [SECRET_IN_JSON] = "json",
    [SECRET_IN_BASIC] = "basic",   [SECRET_IN_AGENT] = "ssh",
};

const char *secret_place_name(enum secret_place place)
{
    return place_names[place];
}

static bool is_said(const char *text)
{
    return text && *text;
}

/* --- hosts ------------------------------------------------------------------------------------ */

static int host_parse(const char *text, struct secret_host *ret, struct err *err)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    uint64_t port = HTTPS_PORT;
    const char *why, *name;

    if (strstr(text, "://") || strchr(text, '/')) {
        (void)err_set(err, ERR_INVALID, "host '%.80s' of the secret is a URL", text);
        return err_remedy(err, "write HOST or HOST:PORT; secrets are sent by https only");
    }
    if (colon && (parse_u64(colon + 1, &port) < 0 || port < 1 || port > PORT_MAX))
        return err_set(err, ERR_INVALID, "port '%.20s' of host '%.80s' is not 1 to %d", colon + 1,
                       text, PORT_MAX);
    why = net_pattern_normalize(text, len, ret->name);
    name = strncmp(ret->name, "*.", 2) == 0 ? ret->name + 2 : ret->name;
    if (!why && !strchr(name, '.'))
        why = "a name, and what follows '*.', has two labels at least";
    if (why)
        return err_set(err, ERR_INVALID, "host '%.80s' of the secret is not valid: %s", text, why);
    ret->port = (uint16_t)port;
    return 0;
}

static int hosts_parse(const struct secret_request *request, struct secret_use *use,
                       struct err *err)
{
    int r = 0;

    if (request->host_count == 0) {
        (void)err_set(err, ERR_INVALID, "a secret needs the hosts that it may be sent to");
        return err_remedy(err, "name each with --host HOST[:PORT]");
    }
    if (request->host_count > SECRET_HOSTS_MAX)
        return err_set(err, ERR_INVALID, "a secret has at most %d hosts, not %zu", SECRET_HOSTS_MAX,
                       request->host_count);
    for (size_t i = 0; r == 0 && i < request->host_count; i++)
        r = host_parse(request->hosts[i], &use->hosts[i], err);
    use->host_count = request->host_count;
    return r;
}

/* --- places ----------------------------------------------------------------------------------- */

static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* These say how a message is framed or to whom it goes, or are written by Holt. */
static bool is_reserved_header(const char *name)
{
    static const char *const reserved[] = { "host",       "content-length",   "transfer-encoding",
                                            "connection", "upgrade",          "te",
                                            "trailer",    "content-encoding", "expect",
                                            "keep-alive", "proxy-connection", "content-type" };

    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    return false;
}

static int template_check(const char *template, struct err *err)
{
    const char *hole = strstr(template, "{}");

    if (!hole || strstr(hole + 2, "{}")) {
        (void)err_set(err, ERR_INVALID, "template '%.80s' must contain '{}' once", template);
        return err_remedy(err, "the value takes the place of {}: 'Authorization: Bearer {}'");
    }
    if (!is_printable(template))
        return err_set(err, ERR_INVALID, "the template of the header has control bytes");
    return 0;
}

/* Reads "NAME: TEMPLATE". */
static int header_parse(const char *text, struct secret_use *use, struct err *err)
{
    size_t len = strcspn(text, ":");
    const char *template = text[len] == ':' ? text + len + 1 : "";

    for (size_t i = 0; i < len; i++)
        if (!is_token_char(text[i]))
            len = 0;
    if (len == 0 || len > SECRET_FIELD_MAX || !*template) {
        (void)err_set(err, ERR_INVALID, "header '%.80s' is not NAME: TEMPLATE", text);
        return err_remedy(err, "write it as in 'Authorization: Bearer {}'");
    }
    template += strspn(template, " ");
    if (strlen(template) > SECRET_TEMPLATE_MAX)
        return err_set(err, ERR_INVALID, "the template of the header is longer than %d bytes",
                       SECRET_TEMPLATE_MAX);
    (void)snprintf(use->field, sizeof(use->field), "%.*s", (int)len, text);
    (void)snprintf(use->template, sizeof(use->template), "%s", template);
    if (is_reserved_header(use->field))
        return err_set(err, ERR_INVALID, "header '%s' cannot hold a secret", use->field);
    return template_check(use->template, err);
}

static int query_parse(const char *text, struct secret_use *use, struct err *err)
{
    if (strlen(text) > SECRET_FIELD_MAX || !is_printable(text) || strpbrk(text, "&=#? "))
        return err_set(err, ERR_INVALID, "'%.80s' is not the name of a query parameter", text);
    (void)snprintf(use->field, sizeof(use->field), "%s", text);
    return 0;
}

static int pointer_parse(const char *text, struct secret_use *use, struct err *err)
{
    if (text[0] != '/' || strlen(text) > SECRET_FIELD_MAX || !is_printable(text)) {
        (void)err_set(err, ERR_INVALID, "'%.80s' is not a JSON pointer", text);
        return err_remedy(err, "write it as in /auth/token (RFC 6901)");
    }
    (void)snprintf(use->field, sizeof(use->field), "%s", text);
    return 0;
}

static int place_parse(const struct secret_request *request, struct secret_use *use,
                       struct err *err)
{
    bool has_header = is_said(request->header);
    bool has_query = is_said(request->query);
    bool has_json = is_said(request->json);

    if (has_header + has_query + has_json + request->is_basic > 1)
        return err_set(err, ERR_INVALID,
                       "a secret has one place: a header, a query parameter, a JSON pointer or the "
                       "password of basic authentication");
    (void)snprintf(use->template, sizeof(use->template), "{}");
    if (has_query) {
        use->place = SECRET_IN_QUERY;
        return query_parse(request->query, use, err);
    }
    if (has_json) {
        use->place = SECRET_IN_JSON;
        return pointer_parse(request->json, use, err);
    }
    if (request->is_basic) {
        use->place = SECRET_IN_BASIC;
        return 0;
    }
    use->place = SECRET_IN_HEADER;
    return header_parse(has_header ? request->header : "Authorization: Bearer {}", use, err);
}

/* --- keys of SSH ------------------------------------------------------------------------------ */

static int host_key_parse(const char *line, char ret[static SECRET_HOST_KEY_MAX + 1],
                          struct err *err)
{
    struct ssh_public key;
    int r = ssh_public_parse(line, &key, err);

    if (r < 0)
        return r;
    if (ssh_public_text(&key, ret, SECRET_HOST_KEY_MAX + 1) < 0)
        return err_set(err, ERR_INVALID, "the host key '%.60s' is too long", line);
    return 0;
}

static int ssh_parse(const struct secret_request *request, struct secret_use *use, struct err *err)
{
    int r = 0;

    if (request->host_count > 0 || is_said(request->header) || is_said(request->query) ||
        is_said(request->json) || request->is_basic || is_said(request->env)) {
        (void)err_set(err, ERR_INVALID,
                      "a key of SSH has host keys, and neither hosts, a place "
                      "nor a variable");
        return err_remedy(err, "leave out either --host-key or the other options");
    }
    if (request->host_key_count > SECRET_HOST_KEYS_MAX)
        return err_set(err, ERR_INVALID, "a key has at most %d host keys, not %zu",
                       SECRET_HOST_KEYS_MAX, request->host_key_count);
    use->place = SECRET_IN_AGENT;
    for (; r == 0 && use->host_key_count < request->host_key_count; use->host_key_count++)
        r = host_key_parse(request->host_keys[use->host_key_count],
                           use->host_keys[use->host_key_count], err);
    return r;
}

/* --- the variable ----------------------------------------------------------------------------- */

int secret_env_check(const char *name, struct err *err)
{
    static const char *const reserved[] = { "PATH", "HOME",  "LANG",    "TERM",
                                            "USER", "SHELL", "LOGNAME", "PWD" };
    size_t len = strlen(name);

    if (len < 1 || len > SECRET_ENV_MAX || isdigit((unsigned char)name[0]))
        len = 0;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            len = 0;
    if (len == 0)
        return err_set(err, ERR_INVALID,
                       "'%.80s' is not the name of a variable: 1 to %d letters, digits or '_'",
                       name, SECRET_ENV_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (strcmp(name, reserved[i]) == 0)
            len = 0;
    if (len == 0 || strncmp(name, "LD_", 3) == 0)
        return err_set(err, ERR_INVALID, "variable '%s' is reserved", name);
    return 0;
}

/* A secret "github-token" is in GITHUB_TOKEN. */
static void env_from_name(const char *name, char ret[static SECRET_ENV_MAX + 1])
{
    size_t at = 0;

    if (isdigit((unsigned char)name[0]))
        ret[at++] = '_';
    for (; *name && at < SECRET_ENV_MAX; name++)
        ret[at++] = isalnum((unsigned char)*name) ? (char)toupper((unsigned char)*name) : (char)'_';
    ret[at] = '\0';
}

int secret_use_init(const char *name, const struct secret_request *request, struct secret_use *ret,
                    struct err *err)
{
    int r;

    *ret = (struct secret_use){ .host_count = 0 };
    if (request->host_key_count > 0)
        return ssh_parse(request, ret, err);
    r = hosts_parse(request, ret, err);
    if (r == 0)
        r = place_parse(request, ret, err);
    if (r < 0)
        return r;
    if (!is_said(request->env)) {
        env_from_name(name, ret->env);
    } else if (strlen(request->env) > SECRET_ENV_MAX) {
        return secret_env_check(request->env, err);
    } else {
        (void)snprintf(ret->env, sizeof(ret->env), "%s", request->env);
    }
    return secret_env_check(ret->env, err);
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *secret_use_to_json(const struct secret_use *use)
{
    json_t *hosts = json_array(), *host_keys = use->host_key_count > 0 ? json_array() : NULL;

    for (size_t i = 0; i < use->host_key_count; i++)
        (void)json_array_append_new(host_keys, json_string(use->host_keys[i]));
    for (size_t i = 0; i < use->host_count; i++) {
        char text[NET_NAME_SIZE + 8];

        (void)snprintf(text, sizeof(text), "%s:%u", use->hosts[i].name, use->hosts[i].port);
        (void)json_array_append_new(hosts, json_string(text));
    }
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:o*}", "hosts", hosts, "place",
                     secret_place_name(use->place), "field", use->field, "template", use->template,
                     "env", use->env, "hostKeys", host_keys);
}

static int text_read(const json_t *json, const char *name, char *ret, size_t size, struct err *err)
{
    const char *text = NULL;
    int r = json_get_text(json, name, &text, err);

    if (r == 0 && (!text || strlen(text) >= size))
        r = err_set(err, ERR_INVALID, "field '%s' is missing or too long", name);
    if (r == 0)
        (void)snprintf(ret, size, "%s", text);
    return r;
}

static int host_keys_read(const json_t *json, struct secret_use *use, struct err *err)
{
    const json_t *list = json_object_get(json, "hostKeys");
    int r = 0;

    if (json_array_size(list) > SECRET_HOST_KEYS_MAX)
        return err_set(err, ERR_INVALID, "field 'hostKeys' is too long");
    for (; r == 0 && use->host_key_count < json_array_size(list); use->host_key_count++) {
        const char *line = json_string_value(json_array_get(list, use->host_key_count));

        r = host_key_parse(line ? line : "", use->host_keys[use->host_key_count], err);
    }
    return r;
}

int secret_use_from_json(const json_t *json, struct secret_use *ret, struct err *err)
{
    const json_t *hosts = NULL;
    char place[16] = "";
    int r = json_get_array(json, "hosts", &hosts, err);

    *ret = (struct secret_use){ .host_count = 0 };
    if (r == 0 && json_array_size(hosts) > SECRET_HOSTS_MAX)
        r = err_set(err, ERR_INVALID, "field 'hosts' is too long");
    for (size_t i = 0; r == 0 && i < json_array_size(hosts); i++) {
        const char *text = json_string_value(json_array_get(hosts, i));

        r = host_parse(text ? text : "", &ret->hosts[ret->host_count++], err);
    }
    if (r == 0)
        r = text_read(json, "place", place, sizeof(place), err);
    while (r == 0 && ret->place < SECRET_PLACES && strcmp(place_names[ret->place], place) != 0)
        ret->place++;
    if (r == 0 && ret->place == SECRET_PLACES)
        r = err_set(err, ERR_INVALID, "field 'place' is unknown");
    if (r == 0)
        r = text_read(json, "field", ret->field, sizeof(ret->field), err);
    if (r == 0)
        r = text_read(json, "template", ret->template, sizeof(ret->template), err);
    if (r == 0)
        r = host_keys_read(json, ret, err);
    return r == 0 ? text_read(json, "env", ret->env, sizeof(ret->env), err) : r;
}
