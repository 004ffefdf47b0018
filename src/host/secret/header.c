// SPDX-License-Identifier: Apache-2.0
#include "host/secret/header.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/secret/secret.h"
#include "host/secret/use.h"
#include "net/policy.h"

DEFINE_CLEANUP(BIO_free, BIO *);

/* A sealed value can be opened only for sandboxes of the owner who has set it. */
static char *seal_context(const char *owner)
{
    return xasprintf("holt header 1 %s", owner);
}

static int header_check(const struct secret_header *header, struct secret_use *ret, struct err *err)
{
    cleanup_free char *text = xasprintf("%s: %s", header->name, header->template);
    const struct secret_request request = { .hosts = &header->host,
                                            .host_count = 1,
                                            .header = text };
    int r = secret_use_init("header", &request, ret, err);

    if (r == 0 && header->value)
        r = secret_check_value(ret, header->value, strlen(header->value), err);
    return r;
}

static bool is_same_header(const json_t *one, const json_t *other)
{
    return json_equal(json_object_get(one, "hosts"), json_object_get(other, "hosts")) &&
           strcasecmp(json_string_value(json_object_get(one, "field")),
                      json_string_value(json_object_get(other, "field"))) == 0;
}

static void header_put(json_t *list, json_t *header)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!is_same_header(json_array_get(list, i), header))
            continue;
        (void)json_array_set(list, i, header);
        return;
    }
    (void)json_array_append(list, header);
}

static int size_check(const json_t *list, struct err *err)
{
    if (json_array_size(list) > SECRET_HEADERS_MAX)
        return err_set(err, ERR_INVALID, "a sandbox has at most %d headers in its rules",
                       SECRET_HEADERS_MAX);
    if (json_dumpb(list, NULL, 0, JSON_COMPACT) > SECRET_HEADER_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the headers of the rules are too long together");
    return 0;
}

int secret_header_add(struct host *host, const char *owner, const struct secret_header *header,
                      json_t *list, struct err *err)
{
    cleanup_free char *context = seal_context(owner), *sealed = NULL;
    cleanup_json json_t *json = NULL;
    struct secret_use use;
    int r = header_check(header, &use, err);

    if (r == 0 && header->value)
        r = secrets_seal_text(host->secrets, context, header->value, &sealed, err);
    if (r < 0)
        return r;
    json = secret_use_to_json(&use);
    (void)json_object_del(json, "env");
    (void)json_object_del(json, "place");
    if (sealed)
        (void)json_object_set_new(json, "sealed", json_string(sealed));
    else
        (void)json_object_set_new(json, "secret", json_string(header->secret));
    header_put(list, json);
    return size_check(list, err);
}

int secret_ca_bundle_check(const char *pem, struct err *err)
{
    cleanup_with(BIO_free_slot) BIO *bio = BIO_new_mem_buf(pem, -1);
    size_t count = 0;
    X509 *certificate;

    if (strlen(pem) > NET_CA_BUNDLE_MAX)
        return err_set(err, ERR_INVALID, "the CA bundle is longer than %d bytes",
                       NET_CA_BUNDLE_MAX);
    while (bio && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        X509_free(certificate);
        count++;
    }
    ERR_clear_error();
    return count > 0 ? 0 : err_set(err, ERR_INVALID, "the CA bundle has no certificate in PEM");
}

/* Reads the sandbox's own layer. Returns false if there is none. */
static bool layer_read(const char *recorded, struct net_layer *ret)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    cleanup_json json_t *json = NULL;
    struct err ignored;

    if (!recorded || json_parse_object(recorded, strlen(recorded), &json, &ignored) < 0 ||
        net_policy_from_json(json, &policy, &ignored) < 0)
        return false;
    for (size_t i = 0; i < policy.count; i++) {
        if (policy.layers[i].source != NET_FROM_SANDBOX)
            continue;
        *ret = policy.layers[i];
        policy.layers[i] = (struct net_layer){ 0 };
        return true;
    }
    return false;
}

bool secret_headers_are_set(const char *recorded)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };

    return layer_read(recorded, &layer) && json_array_size(layer.headers) > 0;
}

static int value_open(struct host *host, const char *owner, const json_t *header,
                      struct secret_value *ret, struct err *err)
{
    const char *sealed = json_string_value(json_object_get(header, "sealed"));
    const char *id = json_string_value(json_object_get(header, "secret"));
    cleanup_free char *context = seal_context(owner);

    if (sealed)
        return secrets_open_text(host->secrets, context, sealed, ret, err);
    return secrets_source_value(host->secrets, owner, id ? id : "", ret, err);
}

static json_t *header_for_net(struct host *host, const char *owner, const json_t *header)
{
    cleanup_with(secret_value_done) struct secret_value value = { .len = 0 };
    json_t *json = json_deep_copy(header);
    const char *id = json_string_value(json_object_get(header, "secret"));
    struct err err = { 0 };

    (void)json_object_del(json, "sealed");
    (void)json_object_del(json, "secret");
    (void)json_object_set_new(json, "place", json_string("set"));
    (void)json_object_set_new(json, "name", json_string(id ? id : "network.rules"));
    (void)json_object_set_new(json, "id", json_string(id ? id : ""));
    /* Rules and the proxy of a sandbox are set by its owner or an admin. */
    (void)json_object_set_new(json, "mayUseOwnPath", json_true());
    if (value_open(host, owner, header, &value, &err) == 0)
        (void)json_object_set_new(json, "value", json_stringn(value.bytes, value.len));
    else
        log_warn("a header of network.rules has no value: %s", err.msg);
    return json;
}

void secret_headers_for_net(struct host *host, const char *owner, const char *recorded,
                            json_t *message)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    json_t *list = json_object_get(message, "secrets");

    if (!layer_read(recorded, &layer))
        return;
    if (!list) {
        list = json_array();
        (void)json_object_set_new(message, "secrets", list);
    }
    for (size_t i = 0; i < json_array_size(layer.headers); i++)
        (void)json_array_append_new(list,
                                    header_for_net(host, owner, json_array_get(layer.headers, i)));
    if (layer.ca_bundle)
        (void)json_object_set_new(message, "caBundle", json_string(layer.ca_bundle));
}
