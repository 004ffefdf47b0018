// SPDX-License-Identifier: Apache-2.0
/* The cache of steps. The hash of a step covers the base template and all steps up to it. After a
 * step that writes files, the sandbox is committed as the template step-HASH. A build starts from
 * the last cached step. A forced step replaces the cached one; if that cannot be removed because
 * other templates depend on it, the new one is step-HASH.1 and so on, and the highest number is
 * used. The hash covers the owner: a step of another owner may have copied files of theirs, or have
 * been made in order to be found. */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"

#define STEP_PREFIX "step-"

enum {
    STEPS_KEPT_MAX = 64,
    STEP_NAME_HASH = 32, /* digits of the hash in the name of a template */
    STEP_VERSIONS_MAX = 8,
};

static void step_template(const char *hash, int version, char into[TEMPLATE_NAME_MAX + 1])
{
    if (version == 0)
        (void)snprintf(into, TEMPLATE_NAME_MAX + 1, STEP_PREFIX "%.*s", STEP_NAME_HASH, hash);
    else
        (void)snprintf(into, TEMPLATE_NAME_MAX + 1, STEP_PREFIX "%.*s.%d", STEP_NAME_HASH, hash,
                       version);
}

bool build_is_step(const char *template)
{
    size_t prefix = strlen(STEP_PREFIX);

    return strncmp(template, STEP_PREFIX, prefix) == 0 &&
           strspn(template + prefix, "0123456789abcdef") == STEP_NAME_HASH &&
           (template[prefix + STEP_NAME_HASH] == '\0' || template[prefix + STEP_NAME_HASH] == '.');
}

/* Replaces the hash by that of itself and the text. */
static void hash_add(char hash[BUILD_HASH_BYTES], const char *text)
{
    cleanup_free char *both = xasprintf("%s\n%s", hash, text);
    unsigned char digest[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)both, strlen(both), digest);
    hex_encode(digest, sizeof(digest), hash);
}

void build_hash_step(char hash[BUILD_HASH_BYTES], const json_t *step)
{
    cleanup_json json_t *known =
        json_pack("{s:O?, s:O?, s:O?, s:O*}", "type", json_object_get(step, "type"), "args",
                  json_object_get(step, "args"), "filesHash", json_object_get(step, "filesHash"),
                  "env", json_object_get(step, "env"));
    char *text = json_dumps(known, JSON_COMPACT | JSON_SORT_KEYS);

    hash_add(hash, text ? text : "");
    free(text);
}

/* Includes the time of creation, because a template can be removed and created again. */
int build_hash_origin(struct build *build, struct err *err)
{
    cleanup_free struct template_info *infos = NULL;
    size_t count = 0;
    int r = build->hash[0] ? 0 : template_list(host_store(build->host), &infos, &count, err);

    if (build->hash[0]) /* the base is a step, whose hash has all of this */
        return 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strcmp(infos[i].name, build->from) == 0) {
            cleanup_free char *text =
                xasprintf("%s %lld", build->from, (long long)infos[i].created_at);

            hash_add(build->hash, text);
            if (strcmp(build->caller.owner, OWNER_ROOT) != 0) /* whose hashes have none */
                hash_add(build->hash, build->caller.owner);
            return 0;
        }
    }
    return r < 0 ? r : err_set(err, ERR_NOT_FOUND, "no template '%s'", build->from);
}

/* Returns whether the template exists and can have another layer. */
static bool template_is_usable(struct build *build, const char *name)
{
    struct template *template = NULL;
    struct err ignored;
    bool has_room;

    if (template_open(host_store(build->host), name, &template, &ignored) < 0)
        return false;
    has_room = template->trees[0].layer_count < TEMPLATE_LAYERS_MAX;
    template_close(template);
    return has_room;
}

static bool step_find(struct build *build, const char *hash, char ret_name[TEMPLATE_NAME_MAX + 1])
{
    for (int version = STEP_VERSIONS_MAX - 1; version >= 0; version--) {
        step_template(hash, version, ret_name);
        if (template_is_usable(build, ret_name))
            return true;
    }
    return false;
}

size_t build_cached_steps(struct build *build)
{
    char hash[BUILD_HASH_BYTES], name[TEMPLATE_NAME_MAX + 1];
    size_t kept = 0, i;
    json_t *step;

    memcpy(hash, build->hash, sizeof(hash));
    json_array_foreach(build->steps, i, step) {
        if (build->is_forced || json_is_true(json_object_get(step, "force")))
            break;
        build_hash_step(hash, step);
        if (!build_step_writes(step) || !step_find(build, hash, name))
            continue;
        kept = i + 1;
        memcpy(build->origin, name, sizeof(name));
        memcpy(build->last, name, sizeof(name));
    }
    return kept;
}

/* Removes the oldest cached steps beyond the limit, except those that other templates need. */
static void cache_prune(struct build *build)
{
    cleanup_free struct template_info *infos = NULL;
    size_t count = 0, kept = 0;
    struct err ignored;

    if (template_list(host_store(build->host), &infos, &count, &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        kept += build_is_step(infos[i].name);
    for (; kept > STEPS_KEPT_MAX; kept--) {
        struct template_info *oldest = NULL;

        for (size_t i = 0; i < count; i++)
            if (build_is_step(infos[i].name) &&
                (!oldest || infos[i].created_at < oldest->created_at))
                oldest = &infos[i];
        if (!oldest)
            return;
        (void)host_remove_template(build->host, oldest->name, &ignored);
        oldest->name[0] = '\0';
    }
}

/* Removes the versions of a step; returns the first free version after those that remain. */
static int version_make_room(struct build *build)
{
    char name[TEMPLATE_NAME_MAX + 1];
    struct err err = { 0 };
    int next = 0;

    for (int version = 0; version < STEP_VERSIONS_MAX; version++) {
        step_template(build->hash, version, name);
        if (host_remove_template(build->host, name, &err) < 0 && err.kind != ERR_NOT_FOUND)
            next = version + 1;
    }
    return next;
}

/* If the step is cached already by a concurrent build, that one is used. */
void build_cache_step(struct build *build)
{
    char name[TEMPLATE_NAME_MAX + 1];
    struct template_info info;
    struct err err;

    step_template(build->hash, build->is_forced ? version_make_room(build) : 0, name);
    if (build_commit(build, name, &info, &err) < 0 && err.kind != ERR_EXISTS)
        build->cache_err = err;
    memcpy(build->last, name, sizeof(name));
    cache_prune(build);
}
