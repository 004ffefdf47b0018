/* What the tests of the registry share. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "check.h"
#include "host/registry/registry.h"

static char scratch[] = "/tmp/holt-registry-test.XXXXXX";
static char *path; /* of the registry, in the scratch directory */
static struct registry *registry;

static inline void start(void)
{
    struct err err = { 0 };

    CHECK(registry_open(path, &registry, &err) == 0, "%s", err.msg);
}

static inline void stop(void)
{
    registry_close(registry);
    registry = NULL;
}

/* An empty directory for the next test. */
static inline void clear(void)
{
    stop();
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0 && mkdir(scratch, 0700) == 0);
}

static inline void start_anew(void)
{
    clear();
    start();
}

static inline struct sandbox_info numbered(unsigned number)
{
    struct sandbox_info info = { .state = SANDBOX_ACTIVE, .turns = number };

    (void)snprintf(info.id, sizeof(info.id), "s%u", number);
    return info;
}

static inline void put(const struct sandbox_info *info)
{
    struct err err = { 0 };

    CHECK(registry_put(registry, info, &err) == 0, "%s", err.msg);
}

static inline void put_snapshot(const struct sandbox_info *info,
                                const struct snapshot_info *snapshot)
{
    struct err err = { 0 };

    CHECK(registry_put_snapshot(registry, info, snapshot, &err) == 0, "%s", err.msg);
}

/* What is recorded; the next call frees it. */
static inline const struct sandbox_info *list(size_t *ret_count)
{
    static struct sandbox_info *sandboxes;
    static size_t count;
    struct err err = { 0 };

    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&sandboxes[i]);
    free(sandboxes);
    CHECK(registry_list(registry, &sandboxes, &count, &err) == 0, "%s", err.msg);
    *ret_count = count;
    return sandboxes;
}

static inline const struct sandbox_info *list_one(void)
{
    size_t count;
    const struct sandbox_info *all = list(&count);

    CHECK(count == 1);
    return all;
}

static inline const struct snapshot_info *list_snapshots(const char *id, size_t *ret_count)
{
    static struct snapshot_info *snapshots;
    struct err err = { 0 };

    free(snapshots);
    CHECK(registry_list_snapshots(registry, id, &snapshots, ret_count, &err) == 0, "%s", err.msg);
    return snapshots;
}

static inline void fill(char *text, size_t size, char with)
{
    memset(text, with, size - 1);
    text[size - 1] = '\0';
}

/* Every field has a value of its own, the texts at their full length and the numbers at theirs. */
static inline struct sandbox_info full_info(struct label *labels)
{
    struct sandbox_info info = {
        .state = SANDBOX_ROLLING_BACK,
        .created_ms = 1700000000001,
        .limits = { .memory_bytes = UINT64_MAX, .cpu_millis = UINT32_MAX, .pids = 103 },
        .quota_bytes = UINT64_MAX - 1,
        .labels = labels,
        .label_count = 2,
        .turns = 104,
        .snapshots_max = 105,
        .expires_ms = 1700000000106,
        .expire_action = ACTION_PAUSE,
        .idle_timeout_ms = 107,
        .idle_action = ACTION_PAUSE,
        .last_active_ms = 1700000000108,
        .uid_slot = 109,
        .generation = 110,
    };

    fill(info.id, sizeof(info.id), 'a');
    fill(info.name, sizeof(info.name), 'b');
    fill(info.template, sizeof(info.template), 'c');
    fill(info.runtime, sizeof(info.runtime), 'd');
    fill(info.reason, sizeof(info.reason), 'e');
    fill(info.base, sizeof(info.base), 'f');
    fill(info.machine, sizeof(info.machine), 'g');
    fill(info.limits_group, sizeof(info.limits_group), 'h');
    fill(info.request_key, sizeof(info.request_key), 'i');
    fill(info.request_digest, sizeof(info.request_digest), 'j');
    fill(labels[0].key, sizeof(labels[0].key), 'z');
    fill(labels[0].value, sizeof(labels[0].value), 'i');
    fill(labels[1].key, sizeof(labels[1].key), 'y');
    labels[1].value[0] = '\0';
    return info;
}

static inline void scratch_make(void)
{
    CHECK(mkdtemp(scratch));
    path = xasprintf("%s/holt.db", scratch);
}

static inline void scratch_remove(void)
{
    size_t count;

    /* The lists keep what they returned last until they are called again. */
    start_anew();
    (void)list(&count);
    (void)list_snapshots("", &count);
    stop();
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0);
    free(path);
}
