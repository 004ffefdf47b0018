// SPDX-License-Identifier: Apache-2.0
/* What has been run before is not run again: every step has a hash over its origin and all steps up
 * to it, and after one that writes files the sandbox is committed as the template step-HASH. A
 * build begins from the last of these that there is. What was made anew although it was there
 * replaces it; if that cannot be removed because others stand on it, the new one is step-HASH.1 and
 * so on, and the last counts. */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"

#define STEP_PREFIX "step-"

enum {
    STEPS_KEPT_MAX = 64,
    STEP_NAME_HASH = 32, /* digits of it in the name of a template */
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

/* hash becomes that of itself and the text behind it. */
static void hash_add(char hash[BUILD_HASH_BYTES], const char *text)
{
    cleanup_free char *both = xasprintf("%s\n%s", hash, text);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    (void)EVP_Digest(both, strlen(both), digest, &len, EVP_sha256(), NULL);
    for (size_t i = 0; i < len && 2 * i + 2 < BUILD_HASH_BYTES; i++)
        (void)snprintf(hash + 2 * i, 3, "%02x", digest[i]);
}

void build_hash_step(char hash[BUILD_HASH_BYTES], const json_t *step)
{
    cleanup_json json_t *known =
        json_pack("{s:O?, s:O?, s:O?}", "type", json_object_get(step, "type"), "args",
                  json_object_get(step, "args"), "filesHash", json_object_get(step, "filesHash"));
    char *text = json_dumps(known, JSON_COMPACT | JSON_SORT_KEYS);

    hash_add(hash, text ? text : "");
    free(text);
}

/* A template that was removed and made anew is another origin. */
int build_hash_origin(struct build *build, struct err *err)
{
    cleanup_free struct template_info *infos = NULL;
    size_t count = 0;
    int r = template_list(host_store(build->host), &infos, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strcmp(infos[i].name, build->from) == 0) {
            cleanup_free char *text =
                xasprintf("%s %lld", build->from, (long long)infos[i].created_at);

            hash_add(build->hash, text);
            return 0;
        }
    }
    return r < 0 ? r : err_set(err, ERR_NOT_FOUND, "no template '%s'", build->from);
}

/* There, and with room above it for the template that is to be. */
static bool can_begin_from(struct build *build, const char *name)
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
        if (can_begin_from(build, ret_name))
            return true;
    }
    return false;
}

size_t build_steps_kept(struct build *build)
{
    char hash[BUILD_HASH_BYTES], name[TEMPLATE_NAME_MAX + 1];
    size_t kept = 0, i;
    json_t *step;

    memcpy(hash, build->hash, sizeof(hash));
    json_array_foreach(build->steps, i, step)
    {
        if (build->is_forced || json_is_true(json_object_get(step, "force")))
            break;
        build_hash_step(hash, step);
        if (!build_step_writes(step) || !step_find(build, hash, name))
            continue;
        kept = i + 1;
        memcpy(build->origin, name, sizeof(name));
    }
    return kept;
}

/* Removes the oldest of what steps have left, beyond so many; but not what others stand on. */
static void prune_steps(struct build *build)
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

/* Removes what there is; the first version that lies behind what stays. */
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

/* If it is there and was not asked to be made anew, somebody was faster, and it is as good. */
void build_keep_step(struct build *build)
{
    char name[TEMPLATE_NAME_MAX + 1];
    struct template_info info;
    struct err ignored;

    step_template(build->hash, build->is_forced ? version_make_room(build) : 0, name);
    (void)sandbox_commit(build->sandbox, name, &info, &ignored);
    prune_steps(build);
}
