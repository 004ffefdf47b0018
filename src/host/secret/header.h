/* Headers that holt-net sets on requests of a sandbox, inside TLS that it ends, as network.rules of
 * E2B ask for them. They are recorded with the sandbox's own layer of its network policy, as a list
 * of {"hosts":["api.example.com:443"],"field":"Authorization","template":"Bearer {}",
 * "sealed":TEXT}. Instead of a sealed value there may be "secret", the id of a secret that a front
 * end keeps. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct err;
struct host;

enum {
    SECRET_HEADERS_MAX = 48,             /* of one sandbox */
    SECRET_HEADER_BYTES_MAX = 32 * 1024, /* of what is recorded of them */
};

struct secret_header {
    const char *host; /* "HOST[:PORT]", may be "*.name" */
    const char *name;
    const char *template; /* with one "{}" */
    const char *value;    /* NULL: that of `secret` */
    const char *secret;   /* its id */
};

/* Checks a header and adds what to record of it, with the value sealed for the owner; it replaces
 * one of the same host and name. Fails with ERR_INVALID. */
int secret_header_add(struct host *host, const char *owner, const struct secret_header *header,
                      json_t *list, struct err *err);

/* Fails with ERR_INVALID unless the text is PEM of certificates, of NET_CA_BUNDLE_MAX bytes at
 * most.
 */
int secret_ca_bundle_check(const char *pem, struct err *err);

/* Returns whether the recorded layers (NULL: none) set headers. */
bool secret_headers_are_set(const char *recorded);

/* Adds to a message for holt-net what the recorded layers say besides the policy: the headers to
 * "secrets", and "caBundle". A header whose value is gone has none there, and requests to its hosts
 * are refused. */
void secret_headers_for_net(struct host *host, const char *owner, const char *recorded,
                            json_t *message);
