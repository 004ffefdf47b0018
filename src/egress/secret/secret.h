/* The secrets of one sandbox in holt-net: what replaces which placeholder on the way to which
 * hosts, and what is set on all requests to them. They exist in memory only and are wiped. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/name.h"

struct needles;

enum {
    BROKER_SECRETS_MAX = 64, /* of one sandbox */
    BROKER_HOSTS_MAX = 64,   /* of one secret */
    BROKER_VALUE_MAX = 8192,
    BROKER_PLACEHOLDER_MIN = 16,
    BROKER_PLACEHOLDER_MAX = 256,
    BROKER_FIELD_MAX = 256, /* of a field's name or a template */
};

enum broker_place {
    BROKER_HEADER,
    BROKER_BASIC,
    BROKER_QUERY,
    BROKER_JSON,
    BROKER_SET, /* a header that is set, without a placeholder */
};

struct broker_host {
    char name[NET_NAME_SIZE]; /* a pattern */
    uint16_t port;
};

struct broker_secret {
    char *name, *id;
    char *placeholder; /* NULL: BROKER_SET */
    char *value;       /* NULL: it is gone, of BROKER_SET only */
    enum broker_place place;
    char *field;
    char *prefix, *suffix; /* of the template, around "{}" */
    struct broker_host *hosts;
    size_t host_count;
    bool may_use_own_path; /* the proxy and CA bundle of the sandbox are its owner's */
};

/* Shared by the sandbox and by requests under way, which go on with what they began with. */
struct broker_secrets {
    unsigned refs;
    struct broker_secret *items;
    size_t count;
    struct needles *placeholders; /* their tags are indexes of items */
    struct needles *values;
};

/* Reads the field "secrets" of a message; none if absent. A secret that cannot be used is left out,
 * and the log says its name; then its placeholder is worthless. */
struct broker_secrets *broker_secrets_read(const json_t *list);

struct broker_secrets *broker_secrets_ref(struct broker_secrets *secrets);
void broker_secrets_unref(struct broker_secrets *secrets);

bool broker_host_is(const struct broker_host *host, const char *name, uint16_t port);
bool broker_secret_is_for(const struct broker_secret *secret, const char *name, uint16_t port);

/* Returns whether a secret names the host, whose TLS must then be ended here. */
bool broker_secrets_name(const struct broker_secrets *secrets, const char *name, uint16_t port);

/* Returns whether a header is set on requests to the host: one of BROKER_SET that names it, and
 * none other names it more exactly, as a longer pattern or the name itself do. */
bool broker_secret_is_set(const struct broker_secrets *secrets, size_t i, const char *name,
                          uint16_t port);
