// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/sandbox_json.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/wake.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/observe/stats.h"
#include "host/sandbox/info.h"
#include "host/sandbox/network.h"
#include "http/exchange.h"
#include "store/store.h"

enum { DOMAIN_SIZE = 256, MIB = 1024 * 1024 };

bool e2b_is_there(const struct sandbox_info *info)
{
    return info->state != SANDBOX_CREATING && info->state != SANDBOX_DESTROYING;
}

bool e2b_is_running(const struct sandbox_info *info)
{
    return info->state == SANDBOX_ACTIVE || info->state == SANDBOX_ROLLING_BACK;
}

json_t *e2b_info_note(const struct sandbox_info *info)
{
    json_t *metadata = info->metadata ? json_loads(info->metadata, 0, NULL) : NULL;

    return metadata ? metadata : json_object();
}

json_t *e2b_time_json(uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    char day[32], text[48];
    struct tm tm;

    (void)gmtime_r(&seconds, &tm);
    (void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % 1000));
    return json_string(text);
}

/* Under which clients reach ports of sandboxes by names: what they called us by, if that is a name
 * and not an address. NULL: they know better than we do. */
static const char *domain_of(const struct e2b_request *request, char text[DOMAIN_SIZE])
{
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST);
    const struct listener *listener = request->exchange->listener;
    unsigned char bytes[sizeof(struct in_addr)];
    char name[DOMAIN_SIZE];
    bool is_tls;

    if (*listener->origin_rules.preview && listener_preview(listener, text, DOMAIN_SIZE, &is_tls))
        return text;

    if (!host || *host == '[' || strlen(host) >= DOMAIN_SIZE)
        return NULL;
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":"), host);
    if (inet_pton(AF_INET, name, bytes) == 1)
        return NULL;
    (void)snprintf(text, DOMAIN_SIZE, "%s", strncmp(host, "api.", 4) == 0 ? host + 4 : host);
    return text;
}

static const char *template_of(const struct sandbox_info *info, const json_t *metadata)
{
    const char *id = e2b_metadata_text(metadata, "templateID");

    return id ? id : info->template;
}

/* A read-only token does not get the sandbox's secrets. */
static json_t *secret_json(const struct e2b_request *request, const json_t *metadata,
                           const char *field)
{
    return request->is_read_only ? NULL : json_incref(json_object_get(metadata, field));
}

json_t *e2b_sandbox_json(const struct e2b_request *request, const struct sandbox_info *info,
                         const json_t *metadata)
{
    char id[SANDBOX_ID_MAX] = "", domain[DOMAIN_SIZE];
    json_t *traffic = secret_json(request, metadata, "trafficToken");

    (void)e2b_id_from(info->id, id);
    return json_pack("{s:s, s:s, s:s*, s:s, s:s, s:o*, s:o, s:s?}", "sandboxID", id, "templateID",
                     template_of(info, metadata), "alias", e2b_metadata_text(metadata, "alias"),
                     "clientID", E2B_CLIENT_ID, "envdVersion", E2B_ENVD_VERSION, "envdAccessToken",
                     secret_json(request, metadata, "accessToken"), "trafficAccessToken",
                     traffic ? traffic : json_null(), "domain", domain_of(request, domain));
}

/* Storage may have to start a program to say it, so a long list asks once. */
uint64_t e2b_disk_bytes(struct e2b_request *request, uint64_t quota_bytes)
{
    struct store_space space = { 0 };
    struct err ignored;

    if (quota_bytes > 0)
        return quota_bytes;
    if (request->storage_bytes == 0 &&
        store_space(host_store(request->host), &space, &ignored) == 0)
        request->storage_bytes = space.used + space.available;
    return request->storage_bytes;
}

/* A sandbox without a timeout reports the latest possible end; a paused one the time of its last
 * activity. */
static uint64_t end_of(const struct sandbox_info *info)
{
    if (info->expires_ms)
        return info->expires_ms;
    if (!e2b_is_running(info))
        return info->last_active_ms;
    return clock_wall_ms() + (uint64_t)E2B_TIMEOUT_MAX_S * 1000;
}

static json_t *or_object(const json_t *metadata, const char *field)
{
    json_t *value = json_object_get(metadata, field);

    return value ? json_incref(value) : json_object();
}

json_t *e2b_listed_json(struct e2b_request *request, const struct sandbox_info *info,
                        const json_t *metadata)
{
    json_t *mounts = json_object_get(metadata, "volumeMounts");
    char id[SANDBOX_ID_MAX] = "";
    struct sandbox_limits limits;

    (void)e2b_id_from(info->id, id);
    sandbox_limits_in_force(request->host, &info->limits, &limits);
    return json_pack("{s:s, s:s, s:s*, s:s, s:o, s:o, s:I, s:I, s:I, s:o, s:s, s:s, s:o}",
                     "sandboxID", id, "templateID", template_of(info, metadata), "alias",
                     e2b_metadata_text(metadata, "alias"), "clientID", E2B_CLIENT_ID, "startedAt",
                     e2b_time_json(info->created_ms), "endAt", e2b_time_json(end_of(info)),
                     "cpuCount", (json_int_t)((limits.cpu_millis + 999) / 1000), "memoryMB",
                     (json_int_t)(limits.memory_bytes / MIB), "diskSizeMB",
                     (json_int_t)(e2b_disk_bytes(request, info->quota_bytes) / MIB), "metadata",
                     or_object(metadata, "metadata"), "state",
                     e2b_is_running(info) ? "running" : "paused", "envdVersion", E2B_ENVD_VERSION,
                     "volumeMounts", mounts ? json_incref(mounts) : json_array());
}

json_t *e2b_detail_json(struct e2b_request *request, const struct sandbox_info *info,
                        const json_t *metadata)
{
    cleanup_json json_t *detail = e2b_listed_json(request, info, metadata);
    cleanup_json json_t *more = NULL;
    char domain[DOMAIN_SIZE];

    /* Reports whether anything gets out; the metadata has the request. */
    more = json_pack(
        "{s:o*, s:s?, s:b, s:o, s:{s:s, s:b}}", "envdAccessToken",
        secret_json(request, metadata, "accessToken"), "domain", domain_of(request, domain),
        "allowInternetAccess",
        !json_is_false(json_object_get(metadata, "internet")) &&
            strcmp(network_mode_name(request->host, info->owner, info->network), "none") != 0,
        "network", or_object(metadata, "network"), "lifecycle", "onTimeout",
        e2b_metadata_bool(metadata, "autoPause") ? "pause" : "kill", "autoResume",
        e2b_metadata_bool(metadata, "autoResume"));
    if (!detail || !more || json_object_update(detail, more) < 0)
        return NULL;
    return TAKE_PTR(detail);
}
