// SPDX-License-Identifier: Apache-2.0
/* Mark and sweep. While the marker of the collector is there nobody adds chunks, so what no list
 * names is not needed. It needs 16 bytes of memory for each chunk of each list; half of an identity
 * is enough, as two that begin alike only keep a chunk that nobody needs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "remote/archive/list.h"
#include "remote/archive/marker.h"
#include "remote/archive/pipeline.h"

/* 256 MiB, for some 16 TiB of different chunks. Sorting for less room than the rest of the array
 * would take for ever. */
enum { MARKS_MAX = 16 * 1024 * 1024, MARKS_FULL = 15 * 1024 * 1024, MARKS_FIRST = 4096 };

/* How often it looks whether a writer waits. */
enum { WRITERS_MS = 1000 };

struct mark {
    uint8_t bytes[16];
};

struct collector {
    struct archive_session session;
    struct archive_scratch scratch;
    struct archive_marker marker;
    struct archive_pipeline *pipeline;
    uint64_t looked_ms; /* when it last looked for writers */
    struct mark *marks;
    size_t count, capacity;
    struct archive_collected collected;
    struct err *err;
};

/* Gives up when there is a writer, or when the own marker was removed. */
static int writers_check(struct collector *collector)
{
    const struct archive_session *session = &collector->session;
    char key[REMOTE_KEY_MAX + 1];
    int r;

    if (collector->looked_ms != 0 && clock_ms() - collector->looked_ms < WRITERS_MS)
        return 0;
    r = archive_marker_refresh(session, &collector->marker, collector->err);
    if (r == 0)
        r = archive_marker_find(session, &collector->marker, ARCHIVE_WRITING, key, collector->err);
    collector->looked_ms = clock_ms();
    if (r > 0)
        return err_set(collector->err, ERR_BUSY,
                       "an archive of owner '%.60s' is being written in %.60s ('%.80s')",
                       session->store.owner, remote_where(session->store.remote), key);
    return r;
}

/* --- mark ------------------------------------------------------------------------------------- */

static int mark_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct mark));
}

static void marks_sort(struct collector *collector)
{
    struct mark *marks = collector->marks;
    size_t kept = 0;

    if (collector->count == 0)
        return;
    qsort(marks, collector->count, sizeof(*marks), mark_order);
    for (size_t i = 0; i < collector->count; i++) {
        if (kept == 0 || mark_order(&marks[kept - 1], &marks[i]) != 0)
            marks[kept++] = marks[i];
    }
    collector->count = kept;
}

/* Makes room in the array. Archives share chunks: first it loses what it has twice. */
static int marks_grow(struct collector *collector)
{
    marks_sort(collector);
    if (collector->capacity > 0 && collector->count <= collector->capacity / 2)
        return 0;
    if (collector->capacity < MARKS_MAX) {
        collector->capacity = collector->capacity ? 2 * collector->capacity : MARKS_FIRST;
        collector->marks =
            xreallocarray(collector->marks, collector->capacity, sizeof(*collector->marks));
        return 0;
    }
    if (collector->count <= MARKS_FULL)
        return 0;
    return err_set(collector->err, ERR_EXHAUSTED,
                   "the archives of owner '%.60s' have over %d different chunks",
                   collector->session.store.owner, MARKS_FULL);
}

static int mark_add(struct collector *collector, const struct archive_ref *ref)
{
    int r = collector->count == collector->capacity ? marks_grow(collector) : 0;

    if (r == 0)
        memcpy(collector->marks[collector->count++].bytes, ref->id, sizeof(struct mark));
    return r;
}

static int list_mark(struct collector *collector, const struct archive_list *list)
{
    cleanup_with(archive_cursor_done) struct archive_cursor cursor = { 0 };
    struct archive_ref ref;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < list->pieces; i++)
        r = mark_add(collector, &list->piece[i]);
    archive_cursor_init(&cursor, &collector->session, &collector->scratch, list);
    while (r == 0 && (r = archive_cursor_next(&cursor, &ref, collector->err)) > 0)
        r = mark_add(collector, &ref);
    return r;
}

static int archive_found(void *context, const struct remote_object *object)
{
    struct collector *collector = context;
    cleanup_with(archive_list_done) struct archive_list list = { 0 };
    const char *name = object->key + strlen(collector->session.store.owner) + strlen("/archives/");
    int r = writers_check(collector);

    if (r == 0)
        r = archive_list_get(&collector->session, &collector->scratch, name, &list, collector->err);
    if (r < 0 && collector->err->kind == ERR_NOT_FOUND) /* removed meanwhile */
        return 0;
    return r < 0 ? r : list_mark(collector, &list);
}

/* --- sweep ------------------------------------------------------------------------------------ */

/* Runs in the threads. */
static int chunk_work(void *context, struct archive_job *job, struct archive_scratch *scratch)
{
    const struct archive_session *session = context;
    char key[REMOTE_KEY_MAX + 1];
    int r;

    (void)scratch;
    archive_chunk_key(session, job->ref.id, key);
    r = remote_remove(session->store.remote, key, &job->err);
    fault_point("archive.collected");
    return r;
}

/* Waits for the oldest removal: 1, 0 if none is under way, or fails. */
static int chunk_settle(struct collector *collector)
{
    const struct archive_job *job = archive_pipeline_wait(collector->pipeline);

    if (!job)
        return 0;
    if (job->result < 0) {
        *collector->err = job->err;
        return job->result;
    }
    collector->collected.objects++;
    collector->collected.bytes += job->stored;
    archive_pipeline_release(collector->pipeline);
    return 1;
}

static int chunk_found(void *context, const struct remote_object *object)
{
    struct collector *collector = context;
    uint8_t id[ARCHIVE_ID_LEN];
    struct archive_job *job;
    int r = writers_check(collector);

    if (r < 0)
        return r;
    if (!archive_chunk_id(&collector->session, object->key, id) ||
        (collector->count > 0 &&
         bsearch(id, collector->marks, collector->count, sizeof(struct mark), mark_order)))
        return 0;
    while (!(job = archive_pipeline_next(collector->pipeline))) {
        r = chunk_settle(collector);
        if (r < 0)
            return r;
    }
    memcpy(job->ref.id, id, sizeof(id));
    job->stored = object->size;
    archive_pipeline_submit(collector->pipeline);
    return 0;
}

static int chunks_sweep(struct collector *collector, const char *prefix)
{
    int r = archive_pipeline_start(chunk_work, &collector->session, &collector->pipeline,
                                   collector->err);

    if (r == 0)
        r = remote_list(collector->session.store.remote, prefix, chunk_found, collector,
                        collector->err);
    while (r >= 0 && (r = chunk_settle(collector)) > 0)
        continue;
    archive_pipeline_stop(collector->pipeline);
    return r;
}

static int chunks_collect(struct collector *collector)
{
    const struct archive_store *store = &collector->session.store;
    cleanup_free char *archives = xasprintf("%s/archives/", store->owner);
    cleanup_free char *chunks = xasprintf("%s/chunks/", store->owner);
    int r = archive_marker_put(&collector->session, ARCHIVE_COLLECTING, &collector->marker,
                               collector->err);

    if (r == 0)
        r = writers_check(collector);
    if (r == 0)
        r = remote_list(store->remote, archives, archive_found, collector, collector->err);
    marks_sort(collector);
    if (r == 0)
        r = chunks_sweep(collector, chunks);
    archive_marker_remove(&collector->session, &collector->marker);
    return r;
}

int archive_collect(const struct archive_store *store, struct archive_collected *ret,
                    struct err *err)
{
    struct collector collector = { .err = err };
    int r = archive_session_open(store, &collector.session, err);

    if (r < 0)
        return r;
    archive_scratch_init(&collector.scratch);
    r = chunks_collect(&collector);
    if (r == 0)
        *ret = collector.collected;
    free(collector.marks);
    archive_scratch_done(&collector.scratch);
    archive_session_done(&collector.session);
    return r;
}
