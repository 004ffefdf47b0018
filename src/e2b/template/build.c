// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/build.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "builder/queue.h"
#include "e2b/core/object_owner.h"
#include "e2b/core/object_store.h"
#include "e2b/template/archive.h"
#include "e2b/template/build_state.h"
#include "host/core/host.h"
#include "host/core/reactor.h"

enum {
    LOGS_KEPT_MAX = 32,
    LIMIT_MS = 3600 * 1000,
    READY_MS = 60 * 1000,
};

#define TEMPLATE_PREFIX "build-"

/* Newest first. */
struct entry {
    struct entry *next;
    struct build *build;
    char id[E2B_ID_BYTES], template_id[E2B_ID_BYTES];
    char owner[OWNER_NAME_MAX + 1];
    bool is_settled; /* the object store knows how it ended */
};

struct e2b_builds {
    struct host *host;
    struct e2b_objects *objects;
    struct build_queue *queue;
    char *files;
    char secret[2 * E2B_ID_BYTES];
    struct lock lock; /* over what follows, and over changes to the object store's templates */
    struct entry *entries;
    bool is_closing;
};

void e2b_build_template(const char *id, char into[TEMPLATE_NAME_MAX + 1])
{
    (void)snprintf(into, TEMPLATE_NAME_MAX + 1, TEMPLATE_PREFIX "%.40s", id);
}

const char *e2b_build_of(const char *template)
{
    const char *id = template + strlen(TEMPLATE_PREFIX);

    if (strncmp(template, TEMPLATE_PREFIX, strlen(TEMPLATE_PREFIX)) != 0 ||
        !hex_is_text(id, E2B_ID_BYTES - 1))
        return NULL;
    return id;
}

int e2b_id_new(char into[E2B_ID_BYTES], struct err *err)
{
    int r = random_hex(into, E2B_ID_BYTES / 2);

    return r < 0 ? err_sys(err, r, "get random bytes") : 0;
}

/* Version 4 and its variant are the two digits that are no part of an id. */
void e2b_build_uuid(const char *id, char ret[E2B_UUID_BYTES])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char digits[2 * SHA256_DIGEST_LENGTH + 1], last[] = "0000000000";

    if (hex_is_text(id, E2B_ID_BYTES - 1)) {
        (void)snprintf(digits, sizeof(digits), "%s", id);
    } else {
        (void)SHA256((const unsigned char *)id, strlen(id), hash);
        hex_encode(hash, sizeof(hash), digits);
        memcpy(last, digits + E2B_ID_BYTES, sizeof(last) - 1);
    }
    (void)snprintf(ret, E2B_UUID_BYTES, "%.8s-%.4s-4%.3s-8%.3s-%.2s%s", digits, digits + 8,
                   digits + 12, digits + 15, digits + 18, last);
}

json_t *e2b_build_uuid_json(const char *id)
{
    char uuid[E2B_UUID_BYTES];

    e2b_build_uuid(id, uuid);
    return json_string(uuid);
}

void e2b_build_parse(const char *word, char ret[E2B_ID_BYTES])
{
    char uuid[E2B_UUID_BYTES];

    (void)snprintf(ret, E2B_ID_BYTES, "%s", word);
    if (strlen(word) != sizeof(uuid) - 1)
        return;
    (void)snprintf(ret, E2B_ID_BYTES, "%.8s%.4s%.3s%.3s%.2s", word, word + 9, word + 15, word + 20,
                   word + 24);
    e2b_build_uuid(ret, uuid);
    if (strcasecmp(uuid, word) != 0)
        (void)snprintf(ret, E2B_ID_BYTES, "%s", word);
}

char *e2b_builds_files(const struct e2b_builds *builds, const char *owner)
{
    if (strcmp(owner, OWNER_ROOT) == 0)
        return xstrdup(builds->files);
    return xasprintf("%s/owner-%s", builds->files, owner);
}

void e2b_builds_ticket(const struct e2b_builds *builds, const char *owner, const char *hash,
                       char into[65])
{
    cleanup_free char *text = xasprintf("%s%s/%s", builds->secret, owner, hash);
    unsigned char digest[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)text, strlen(text), digest);
    hex_encode(digest, sizeof(digest), into);
}

/* --- what the object store knows
 * ----------------------------------------------------------------------
 */

/* Stores the outcome of builds that have ended. Builds that fail because the daemon stops are
 * marked by the next daemon. Needs the lock. */
static void settle(struct e2b_builds *builds)
{
    for (struct entry *entry = builds->entries; entry; entry = entry->next) {
        cleanup_json json_t *template = NULL;
        struct build_state state;
        struct err ignored;

        if (entry->is_settled)
            continue;
        build_get(entry->build, &state);
        if (state.status == BUILD_RUNS || state.status == BUILD_WAITS)
            continue;
        entry->is_settled = true;
        template = e2b_objects_find(builds->objects, OBJECTS_TEMPLATES, "id", entry->template_id);
        if (!template || (builds->is_closing && state.status == BUILD_HAS_FAILED))
            continue;
        e2b_build_settle(template, entry->id, &state);
        (void)e2b_objects_put(builds->objects, OBJECTS_TEMPLATES, template, NULL, &ignored);
    }
}

/* Called by a build's thread. */
static void on_ended(void *context)
{
    struct e2b_builds *builds = context;

    lock_take(&builds->lock);
    settle(builds);
    lock_release(&builds->lock);
}

/* Needs the lock. */
static json_t *find(struct e2b_builds *builds, const struct e2b_template_word *asked)
{
    cleanup_json json_t *list = NULL;
    json_t *found;

    settle(builds);
    list = e2b_objects_list(builds->objects, OBJECTS_TEMPLATES);
    found = e2b_object_pick(list, asked->caller, "id", asked->word);
    if (!found)
        found = e2b_object_pick(list, asked->caller, "name", asked->word);
    return json_incref(found);
}

json_t *e2b_builds_find(struct e2b_builds *builds, const struct caller *caller, const char *word)
{
    const struct e2b_template_word asked = { caller, word };
    json_t *found;

    lock_take(&builds->lock);
    found = find(builds, &asked);
    lock_release(&builds->lock);
    return found;
}

json_t *e2b_builds_list(struct e2b_builds *builds)
{
    json_t *list;

    lock_take(&builds->lock);
    settle(builds);
    list = e2b_objects_list(builds->objects, OBJECTS_TEMPLATES);
    lock_release(&builds->lock);
    return list;
}

int e2b_builds_change(struct e2b_builds *builds, const struct e2b_template_word *asked,
                      const json_t *fallback, e2b_change_fn change, void *context, struct err *err)
{
    cleanup_json json_t *template = NULL;
    int r;

    lock_take(&builds->lock);
    template = find(builds, asked);
    if (!template)
        template = json_deep_copy(fallback);
    r = template ? change(template, context, err)
                 : err_set(err, ERR_NOT_FOUND, "template '%.100s' not found", asked->word);
    if (r == 0) {
        e2b_builds_trim(template);
        r = e2b_objects_put(builds->objects, OBJECTS_TEMPLATES, template, "name", err);
    }
    lock_release(&builds->lock);
    return r;
}

static int owner_record(struct host *host, const char *build, const json_t *template,
                        struct err *err)
{
    cleanup_free char *owner =
        xasprintf("template %s", json_string_value(json_object_get(template, "name")));
    char name[TEMPLATE_NAME_MAX + 1];

    e2b_build_template(build, name);
    return host_set_template_owner(host, name, owner, err);
}

/* The registry does not know the owners of builds that an earlier version of Holt made. */
static int owners_record(struct e2b_builds *builds, struct err *err)
{
    cleanup_json json_t *templates = e2b_objects_list(builds->objects, OBJECTS_TEMPLATES);
    json_t *template, *build;
    const char *id;
    size_t index;
    int r = 0;

    json_array_foreach(templates, index, template) {
        json_object_foreach(json_object_get(template, "builds"), id, build) {
            if (r == 0)
                r = owner_record(builds->host, id, template, err);
        }
    }
    return r;
}

/* Removes the files of builds that have failed or belong to no template any more. Files that a
 * sandbox uses stay until the next sweep. */
static void sweep(struct e2b_builds *builds)
{
    cleanup_free struct template_info *infos = NULL;
    cleanup_json json_t *templates = NULL;
    struct err ignored;
    size_t count = 0;

    /* In this order: a build made meanwhile is in the object store, but not in the list. */
    if (template_list(host_store(builds->host), &infos, &count, &ignored) < 0)
        return;
    templates = e2b_builds_list(builds);
    for (size_t i = 0; i < count; i++) {
        const char *id = e2b_build_of(infos[i].name);

        if (id && !e2b_build_is_known(templates, id) &&
            host_remove_template(builds->host, infos[i].name, &ignored) < 0)
            (void)host_set_template_owner(builds->host, infos[i].name,
                                          "a template that was removed", &ignored);
    }
}

/* --- running builds --------------------------------------------------------------------------- */

/* Waits for their threads, which may need the lock. */
static void entries_free(struct entry *entries)
{
    for (struct entry *entry = entries; entry; entry = entry->next)
        build_free(entry->build);
    while (entries) {
        struct entry *entry = entries;

        entries = entry->next;
        free(entry);
    }
}

/* Takes out the oldest of those that are over, beyond so many. Needs the lock. */
static struct entry *entries_trim(struct e2b_builds *builds)
{
    struct entry **slot = &builds->entries, *surplus = NULL;

    for (size_t count = 0; *slot; count++) {
        struct entry *entry = *slot;

        if (count < LOGS_KEPT_MAX || !entry->is_settled) {
            slot = &entry->next;
            continue;
        }
        *slot = entry->next;
        entry->next = surplus;
        surplus = entry;
    }
    return surplus;
}

/* Counts the builds that run or wait, of this owner (NULL: of all). Needs the lock. */
static size_t running(const struct e2b_builds *builds, const char *owner)
{
    size_t count = 0;

    for (const struct entry *entry = builds->entries; entry; entry = entry->next)
        count += !entry->is_settled && (!owner || strcmp(entry->owner, owner) == 0);
    return count;
}

/* Needs the lock. */
static int room_check(const struct e2b_builds *builds, const char *owner, struct err *err)
{
    const size_t share = owner_share(owner, E2B_BUILDS_MAX);

    if (running(builds, NULL) >= E2B_BUILDS_MAX)
        return err_set(err, ERR_EXHAUSTED, "build limit reached (%d running or waiting)",
                       E2B_BUILDS_MAX);
    if (running(builds, owner) >= share)
        return err_set(err, ERR_EXHAUSTED,
                       "build limit of owner '%s' reached (%zu running or "
                       "waiting)",
                       owner, share);
    return 0;
}

static int begin(struct e2b_builds *builds, json_t *template, const char *id,
                 struct build_spec *spec, struct err *err)
{
    json_t *build = json_object_get(json_object_get(template, "builds"), id);
    const char *status = json_string_value(json_object_get(build, "status"));
    struct entry *entry;
    int r;

    if (!build || !status)
        return err_set(err, ERR_NOT_FOUND, "build '%.40s' not found", id);
    if (strcmp(status, "waiting") != 0)
        return err_set(err, ERR_INVALID, "build '%s' was started already", id);
    r = room_check(builds, spec->caller->owner, err);
    if (r < 0)
        return r;
    spec->queue = builds->queue;
    spec->ended = on_ended;
    spec->context = builds;
    spec->limit_ms = LIMIT_MS;
    spec->ready_ms = READY_MS;
    spec->cpus = (unsigned)json_integer_value(json_object_get(build, "cpuCount"));
    spec->memory_bytes = (uint64_t)json_integer_value(json_object_get(build, "memoryMB")) << 20;
    r = owner_record(builds->host, id, template, err);
    if (r < 0)
        return r;
    entry = xcalloc(1, sizeof(*entry));
    r = build_start(builds->host, spec, &entry->build, err);
    if (r < 0) {
        free(entry);
        return r;
    }
    (void)snprintf(entry->id, sizeof(entry->id), "%s", id);
    (void)snprintf(entry->owner, sizeof(entry->owner), "%s", spec->caller->owner);
    (void)snprintf(entry->template_id, sizeof(entry->template_id), "%s",
                   json_string_value(json_object_get(template, "id")));
    entry->next = builds->entries;
    builds->entries = entry;
    (void)json_object_set_new(build, "status", json_string("building"));
    return e2b_objects_put(builds->objects, OBJECTS_TEMPLATES, template, NULL, err);
}

int e2b_builds_begin(struct e2b_builds *builds, const struct e2b_template_word *asked,
                     const char *id, struct build_spec *spec, struct err *err)
{
    cleanup_json json_t *list = NULL;
    cleanup_free char *files = NULL;
    json_t *template;
    char name[TEMPLATE_NAME_MAX + 1];
    struct entry *surplus;
    int r;

    e2b_build_template(id, name);
    spec->name = name;
    lock_take(&builds->lock);
    settle(builds);
    surplus = entries_trim(builds);
    list = e2b_objects_list(builds->objects, OBJECTS_TEMPLATES);
    template = e2b_object_pick(list, asked->caller, "id", asked->word);
    files = e2b_builds_files(builds, template ? e2b_object_owner(template) : OWNER_ROOT);
    spec->files = files;
    r = template ? begin(builds, template, id, spec, err)
                 : err_set(err, ERR_NOT_FOUND, "template '%.40s' not found", asked->word);
    lock_release(&builds->lock);
    entries_free(surplus);
    sweep(builds);
    return r;
}

json_t *e2b_builds_logs(struct e2b_builds *builds, const char *id, size_t offset, size_t limit,
                        bool *ret_waits)
{
    struct build_state state = { .status = BUILD_RUNS };
    struct entry *entry;
    json_t *logs;

    lock_take(&builds->lock);
    for (entry = builds->entries; entry && strcmp(entry->id, id) != 0;)
        entry = entry->next;
    logs = entry ? build_logs(entry->build, offset, limit) : json_array();
    if (entry)
        build_get(entry->build, &state);
    lock_release(&builds->lock);
    *ret_waits = state.status == BUILD_WAITS;
    return logs;
}

int e2b_builds_remove(struct e2b_builds *builds, const char *id, struct err *err)
{
    int r;

    lock_take(&builds->lock);
    r = e2b_objects_remove(builds->objects, OBJECTS_TEMPLATES, id, err);
    for (struct entry *entry = builds->entries; r == 0 && entry; entry = entry->next)
        if (strcmp(entry->template_id, id) == 0)
            build_cancel(entry->build);
    lock_release(&builds->lock);
    if (r == 0)
        sweep(builds);
    return r;
}

int e2b_builds_open(struct host *host, struct e2b_objects *objects, const char *state_dir,
                    struct e2b_builds **ret, struct err *err)
{
    struct e2b_builds *builds = xcalloc(1, sizeof(*builds));
    int r = e2b_builds_mark_lost(objects, err);

    if (r == 0)
        build_sweep(host);
    lock_init(&builds->lock, LOCK_E2B_BUILDS);
    builds->host = host;
    builds->objects = objects;
    builds->queue = build_queue_new(E2B_BUILDS_RUNNING_MAX);
    builds->files = xasprintf("%s/e2b-files", state_dir);
    if (r == 0) {
        r = e2b_archives_prune(builds->files);
        r = r < 0 ? err_sys(err, r, "prune the uploaded files") : 0;
    }
    if (r == 0)
        r = owners_record(builds, err);
    if (r == 0)
        r = e2b_id_new(builds->secret, err);
    if (r == 0)
        r = e2b_id_new(builds->secret + strlen(builds->secret), err);
    if (r < 0) {
        e2b_builds_close(builds);
        return r;
    }
    sweep(builds);
    *ret = builds;
    return 0;
}

void e2b_builds_close(struct e2b_builds *builds)
{
    if (!builds)
        return;
    lock_take(&builds->lock);
    builds->is_closing = true;
    for (struct entry *entry = builds->entries; entry; entry = entry->next)
        build_cancel(entry->build);
    lock_release(&builds->lock);
    entries_free(builds->entries);
    lock_destroy(&builds->lock);
    build_queue_free(builds->queue);
    free(builds->files);
    free(builds);
}
