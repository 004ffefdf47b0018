// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "remote/archive/chunker.h"
#include "remote/archive/list.h"
#include "remote/archive/marker.h"
#include "remote/archive/names.h"
#include "remote/archive/pipeline.h"

/* A collector looks for writers every second. */
enum { COLLECTOR_WAIT_MS = 10000, COLLECTOR_POLL_MS = 200 };

struct archive_writer {
    struct archive_session session;
    struct archive_marker marker;
    struct archive_pipeline *pipeline;
    struct archive_scratch scratch;
    struct archive_chunker chunker;
    struct archive_job *job;    /* is filled; NULL: none yet */
    struct archive_names names; /* of chunks that were stored or found, and compared */
    struct buf refs;            /* of all chunks */
    uint64_t size, stored;
    int failed; /* the first failure, with err */
    struct err err;
};

DEFINE_CLEANUP(archive_writer_close, struct archive_writer *);

/* Runs in the threads. A chunk that another job has taken on is stored when all jobs succeed. */
static int chunk_work(void *context, struct archive_job *job, struct archive_scratch *scratch)
{
    struct archive_writer *writer = context;
    int r = archive_chunk_identify(&writer->session, &job->content, &job->ref, &job->err);

    job->stored = 0;
    if (r < 0 || !archive_names_add(&writer->names, job->ref.id))
        return r;
    r = archive_chunk_store(&writer->session, scratch, &job->ref, &job->content, &job->stored,
                            &job->err);
    if (r == 0)
        fault_point("archive.chunk");
    return r;
}

/* --- open ------------------------------------------------------------------------------------- */

static int collectors_wait(struct archive_writer *writer, struct err *err)
{
    uint64_t deadline_ms = clock_after_ms(COLLECTOR_WAIT_MS);
    char key[REMOTE_KEY_MAX + 1];
    int r;

    while ((r = archive_marker_find(&writer->session, &writer->marker, ARCHIVE_COLLECTING, key,
                                    err)) > 0) {
        if (clock_ms() >= deadline_ms) {
            (void)err_set(err, ERR_BUSY, "unused chunks are being removed in %.80s ('%.100s')",
                          remote_where(writer->session.store.remote), key);
            return err_remedy(err, "try again later; if that host is gone, remove this object");
        }
        clock_sleep_ms(COLLECTOR_POLL_MS);
    }
    return r;
}

int archive_writer_open(const struct archive_store *store, struct archive_writer **ret,
                        struct err *err)
{
    cleanup_with(archive_writer_close_slot) struct archive_writer *writer =
        xcalloc(1, sizeof(*writer));
    int r;

    archive_names_init(&writer->names);
    archive_scratch_init(&writer->scratch);
    writer->refs.max = (size_t)ARCHIVE_CHUNKS_MAX * ARCHIVE_REF_LEN;
    r = archive_session_open(store, &writer->session, err);
    if (r == 0)
        r = archive_marker_put(&writer->session, ARCHIVE_WRITING, &writer->marker, err);
    if (r == 0)
        r = collectors_wait(writer, err);
    if (r == 0)
        r = archive_pipeline_start(chunk_work, writer, &writer->pipeline, err);
    if (r < 0)
        return r;
    writer->chunker.gears = writer->session.keys.gears;
    *ret = TAKE_PTR(writer);
    return 0;
}

void archive_writer_close(struct archive_writer *writer)
{
    if (!writer)
        return;
    archive_pipeline_stop(writer->pipeline);
    archive_marker_remove(&writer->session, &writer->marker);
    archive_scratch_done(&writer->scratch);
    archive_names_done(&writer->names);
    buf_done(&writer->refs);
    archive_session_done(&writer->session);
    free(writer);
}

/* --- write ------------------------------------------------------------------------------------ */

/* Waits for the oldest chunk and adds it to the list: 1, 0 if none is under way, or fails. */
static int chunk_settle(struct archive_writer *writer)
{
    struct archive_job *job = archive_pipeline_wait(writer->pipeline);
    uint8_t ref[ARCHIVE_REF_LEN];
    int r;

    if (!job)
        return 0;
    r = job->result;
    if (r < 0) {
        writer->err = job->err;
    } else {
        archive_ref_encode(&job->ref, ref);
        r = buf_add(&writer->refs, ref, sizeof(ref));
        if (r < 0)
            r = err_set(&writer->err, ERR_EXHAUSTED, "an archive cannot have over %d chunks",
                        ARCHIVE_CHUNKS_MAX);
        writer->stored += job->stored;
    }
    archive_pipeline_release(writer->pipeline);
    return r < 0 ? r : 1;
}

/* Makes sure that there is a job to fill. */
static int chunk_begin(struct archive_writer *writer)
{
    int r = 0;

    while (!writer->job && !(writer->job = archive_pipeline_next(writer->pipeline)) && r >= 0)
        r = chunk_settle(writer);
    return r < 0 ? r : 0;
}

/* Hands the chunk to the threads. */
static int chunk_end(struct archive_writer *writer)
{
    archive_pipeline_submit(writer->pipeline);
    writer->job = NULL;
    return archive_marker_refresh(&writer->session, &writer->marker, &writer->err);
}

/* Adds the bytes up to the next cut: returns how many, or fails. */
static ssize_t stream_take(struct archive_writer *writer, const uint8_t *data, size_t len)
{
    bool is_cut;
    size_t taken;
    int r = chunk_begin(writer);

    if (r < 0)
        return r;
    taken = archive_chunker_take(&writer->chunker, data, len, &is_cut);
    if (writer->size + taken > ARCHIVE_SIZE_MAX)
        return err_set(&writer->err, ERR_EXHAUSTED, "an archive cannot have over %llu bytes",
                       (unsigned long long)ARCHIVE_SIZE_MAX);
    r = buf_add(&writer->job->content, data, taken);
    if (r < 0)
        return err_sys(&writer->err, r, "keep a chunk of an archive");
    writer->size += taken;
    if (is_cut)
        r = chunk_end(writer);
    return r < 0 ? r : (ssize_t)taken;
}

/* Reports the first failure again. */
static int writer_failed(const struct archive_writer *writer, struct err *err)
{
    *err = writer->err;
    return writer->failed;
}

int archive_write(struct archive_writer *writer, const void *data, size_t len, struct err *err)
{
    const uint8_t *bytes = data;

    while (writer->failed == 0 && len > 0) {
        ssize_t n = stream_take(writer, bytes, len);

        if (n < 0) {
            writer->failed = (int)n;
        } else {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return writer->failed < 0 ? writer_failed(writer, err) : 0;
}

/* --- finish ----------------------------------------------------------------------------------- */

/* Waits until all chunks are stored and compared. */
static int chunks_finish(struct archive_writer *writer)
{
    int r = 0;

    if (writer->job && writer->job->content.len > 0)
        r = chunk_end(writer);
    do {
        if (r >= 0)
            r = chunk_settle(writer);
    } while (r > 0);
    return r;
}

static int list_store(struct archive_writer *writer, const char *name, struct archive_list *list,
                      struct err *err)
{
    int r = random_bytes(list->random, sizeof(list->random));

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    list->size = writer->size;
    list->created_ms = clock_wall_ms();
    list->stored = writer->stored;
    r = archive_pieces_store(&writer->session, &writer->scratch, &writer->refs, list, err);
    if (r < 0)
        return r;
    fault_point("archive.verified");
    r = archive_marker_check(&writer->session, &writer->marker, err);
    if (r == 0)
        r = archive_list_put(&writer->session, &writer->scratch, name, list, err);
    if (r == 0)
        fault_point("archive.listed");
    return r;
}

int archive_writer_finish(struct archive_writer *writer, const char *name, const char *description,
                          struct archive_info *ret, struct err *err)
{
    cleanup_with(archive_list_done) struct archive_list list = { 0 };
    char key[REMOTE_KEY_MAX + 1];
    int r = archive_list_key(&writer->session, name, key, err);

    if (r == 0 && strlen(description) > ARCHIVE_DESCRIPTION_MAX)
        r = err_set(err, ERR_INVALID,
                    "the description of an archive has %zu bytes; %d are the limit",
                    strlen(description), ARCHIVE_DESCRIPTION_MAX);
    if (r < 0)
        return r;
    if (writer->failed == 0)
        writer->failed = chunks_finish(writer);
    if (writer->failed < 0)
        return writer_failed(writer, err);
    list.description = xstrdup(description);
    r = list_store(writer, name, &list, err);
    if (r < 0)
        return r;
    archive_marker_remove(&writer->session, &writer->marker);
    if (ret)
        archive_info_take(name, &list, ret);
    return 0;
}
