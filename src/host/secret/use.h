/* Where a secret may go: hosts and the one place in a request. Recorded as JSON:
 * {"hosts":["api.example.com:443"],"place":"header","field":"Authorization",
 *  "template":"Bearer {}","env":"EXAMPLE_TOKEN"}
 * A private key of SSH has no hosts but "hostKeys", the public keys of the servers that it is for:
 * {"hosts":[],"place":"ssh","hostKeys":["ssh-ed25519 AAAA..."],...} */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/name.h"

struct err;

enum {
    SECRET_HOSTS_MAX = 16,
    SECRET_FIELD_MAX = 128,
    SECRET_TEMPLATE_MAX = 128,
    SECRET_ENV_MAX = 64,
    SECRET_HOST_KEYS_MAX = 8,
    SECRET_HOST_KEY_MAX = 1500, /* of its text */
};

enum secret_place {
    SECRET_IN_HEADER,
    SECRET_IN_QUERY, /* a parameter of the query */
    SECRET_IN_JSON,  /* a text of the body, by its JSON pointer */
    SECRET_IN_BASIC, /* the password of Authorization: Basic */
    SECRET_IN_AGENT, /* nowhere: a key of SSH, which signs */
    SECRET_PLACES
};

/* Returns "header", "query", "json", "basic" or "ssh". */
const char *secret_place_name(enum secret_place place);

struct secret_host {
    char name[NET_NAME_SIZE]; /* normalized; may be "*.name" */
    uint16_t port;
};

struct secret_use {
    struct secret_host hosts[SECRET_HOSTS_MAX];
    size_t host_count;
    enum secret_place place;
    char field[SECRET_FIELD_MAX + 1];       /* of the header, parameter or pointer; "": basic */
    char template[SECRET_TEMPLATE_MAX + 1]; /* with one "{}": what the whole value looks like */
    char env[SECRET_ENV_MAX + 1];           /* the variable with the placeholder; "": ssh */
    char host_keys[SECRET_HOST_KEYS_MAX][SECRET_HOST_KEY_MAX + 1]; /* "TYPE BASE64" */
    size_t host_key_count;
};

/* What a client asks for; NULL or "" where it says nothing. At most one place. */
struct secret_request {
    const char *const *hosts; /* "HOST[:PORT]" */
    size_t host_count;
    const char *header; /* "NAME: TEMPLATE" */
    const char *query;
    const char *json;
    bool is_basic;
    const char *const *host_keys; /* lines of known_hosts; any: it is a key of SSH */
    size_t host_key_count;
    const char *env;
};

/* Checks a request and fills in what it leaves open: port 443, "Authorization: Bearer {}", and the
 * name of the secret in capitals as the variable. Fails with ERR_INVALID. */
int secret_use_init(const char *name, const struct secret_request *request, struct secret_use *ret,
                    struct err *err);

/* Convert to JSON and back. */
json_t *secret_use_to_json(const struct secret_use *use);
int secret_use_from_json(const json_t *json, struct secret_use *ret, struct err *err);

/* Fails with ERR_INVALID unless a process can have a variable of this name, or if the dynamic
 * linker or Holt gives it a meaning. */
int secret_env_check(const char *name, struct err *err);
