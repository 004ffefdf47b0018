/* What a bundle says of a sandbox beyond its files: the member "holt" of the image's configuration,
 *
 *   {"version":1, "limits":{"memoryBytes","cpuMillis","pids","files"}, "quotaBytes", "runtime",
 *    "labels":{}, "snapshotsMax", "ttlMs", "expireAction", "idleTimeoutMs", "idleAction",
 *    "network":{"mode","allow":[],"deny":[],"allowWins","inspect","models"}, "secrets":[NAME],
 *    "template":{"name","settings":{}}, "turns", "base",
 *    "snapshots":[{"name","kind","turn","parent","createdMs","note"}],
 *    "shells":[{"name","state"}]}
 *
 * A document that is read is not trusted: it asks for what a create would ask for. Nothing of it is
 * a secret; those of the sandbox are named for people only. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/sandbox/info.h"
#include "net/policy.h"

struct err;
struct sandbox;

enum { BUNDLE_SHELLS_MAX = 64, BUNDLE_SHELL_BYTES_MAX = 2 << 20 };

/* Describes a sandbox: as it was (info), with these snapshots, oldest first. has_shells: with the
 * saved state of its shells. Returns NULL if memory is short. */
json_t *document_make(struct sandbox *sandbox, const struct sandbox_info *info,
                      const struct snapshot_info *snapshots, size_t count, bool has_shells);

/* What a document asks for. The texts of info and shells are bounded and checked. */
struct document {
    struct sandbox_info info;
    uint64_t ttl_ms;
    struct net_layer network;
    const json_t *settings; /* of the template; in the document. NULL: none */
    const json_t *shells;   /* in the document */
    struct snapshot_info *snapshots;
    size_t snapshot_count;
};

/* Reads a document that stays valid. layers is the number of the image's layers. */
int document_read(const json_t *object, size_t layers, struct document *ret, struct err *err);
void document_done(struct document *document);
