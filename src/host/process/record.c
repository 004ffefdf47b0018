// SPDX-License-Identifier: Apache-2.0
#include "host/process/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "host/process/process.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "wire/frame.h"

struct record *record_new(uint32_t number, const struct process_spec *spec, uint64_t disk_bytes)
{
    struct record *record = xcalloc(1, sizeof(*record));

    atomic_init(&record->refs, 1);
    record->number = number;
    (void)snprintf(record->id, sizeof(record->id), "p%u", number);
    record->spec = process_spec_copy(spec);
    lock_init(&record->lock, LOCK_RECORD);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        window_init(&record->streams[i].window, FRAME_WINDOW, 0);
        spool_init(&record->streams[i].spool, disk_bytes);
    }
    return record;
}

struct record *record_ref(struct record *record)
{
    atomic_fetch_add(&record->refs, 1);
    return record;
}

void record_unref(struct record *record)
{
    if (!record || atomic_fetch_sub(&record->refs, 1) != 1)
        return;
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        window_done(&record->streams[i].window);
        spool_done(&record->streams[i].spool);
        output_times_done(&record->streams[i].times);
    }
    lock_destroy(&record->lock);
    free(record->address);
    free(record->spec);
    free(record);
}

/* Locked. */
static void record_wake_readers(const struct record *record)
{
    for (const struct output_reader *reader = record->readers; reader; reader = reader->next)
        reader_wake(reader);
}

uint64_t record_received(struct record *record, enum output_stream stream)
{
    uint64_t received;

    lock_take(&record->lock);
    received = record->streams[stream].window.end;
    lock_release(&record->lock);
    return received;
}

/* Locked. Returns the offset up to which the window may drop bytes because they are on disk. A
 * reader with back-pressure can be a whole window behind; a file whose tail is shorter than that
 * would lose what the reader has not read. */
static uint64_t record_disk_end(const struct record *record, enum output_stream stream)
{
    const struct spool *spool = &record->streams[stream].spool;
    uint64_t end = spool->fd >= 0 && !spool->is_broken ? spool->end : 0;

    if (spool->half >= FRAME_WINDOW)
        return end;
    for (const struct output_reader *reader = record->readers; reader; reader = reader->next)
        if (reader->is_flow && reader->at[stream] < end)
            end = reader->at[stream];
    return end;
}

int record_add(struct record *record, enum output_stream stream, const void *data, size_t len,
               uint64_t *ret_unspooled)
{
    struct window *window = &record->streams[stream].window;
    const struct spool *spool = &record->streams[stream].spool;
    int r;

    lock_take(&record->lock);
    /* Drop what is on disk: a thousand processes with much output must not hold a full window
     * each. */
    if (!window_has_room(window, len))
        window_forget(window, record_disk_end(record, stream));
    output_times_add(&record->streams[stream].times, window->end, clock_wall_ms());
    r = window_add(window, data, len);
    *ret_unspooled = window->end - spool->end;
    record_wake_readers(record);
    lock_release(&record->lock);
    return r;
}

uint64_t record_ack_offset(struct record *record, enum output_stream stream, bool is_kept)
{
    const struct spool *spool = &record->streams[stream].spool;
    uint64_t settled;

    lock_take(&record->lock);
    settled = record->streams[stream].window.end;
    if (is_kept && !spool->is_broken)
        settled = spool->end;
    for (const struct output_reader *reader = record->readers; reader; reader = reader->next)
        if (reader->is_flow && reader->at[stream] < settled)
            settled = reader->at[stream];
    lock_release(&record->lock);
    return settled;
}

void record_set_writer(struct record *record, struct process *writer)
{
    struct process *before;

    lock_take(&record->lock);
    before = record->writer;
    record->writer = writer ? process_ref(writer) : NULL;
    lock_release(&record->lock);
    process_unref(before);
}

void record_add_restart(struct record *record, const uint64_t base[static PROCESS_STREAMS])
{
    lock_take(&record->lock);
    record->restarts++;
    memcpy(record->base, base, sizeof(record->base));
    lock_release(&record->lock);
}

void record_set_address(struct record *record, const char *address, uint16_t host_port)
{
    lock_take(&record->lock);
    if (!record->address)
        record->address = xstrdup(address);
    record->host_port = host_port;
    lock_release(&record->lock);
}

void record_set_size(struct record *record, struct terminal_size size)
{
    lock_take(&record->lock);
    record->size = size;
    record_wake_readers(record);
    lock_release(&record->lock);
}

void record_set_pid(struct record *record, uint32_t pid)
{
    lock_take(&record->lock);
    record->pid = pid;
    lock_release(&record->lock);
}

bool record_is_over(struct record *record)
{
    bool is_over;

    lock_take(&record->lock);
    is_over = record->is_over;
    lock_release(&record->lock);
    return is_over;
}

void record_shrink(struct record *record)
{
    lock_take(&record->lock);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        window_forget(&record->streams[i].window, record_disk_end(record, i));
        window_trim(&record->streams[i].window);
    }
    lock_release(&record->lock);
}

void record_finish(struct record *record, const struct process_end *end, uint64_t ended_ms)
{
    lock_take(&record->lock);
    record->is_over = true;
    record->end = *end;
    record->ended_ms = ended_ms;
    record->ended_at = clock_boot_ms();
    record_wake_readers(record);
    lock_release(&record->lock);
}

void record_leave(struct record *record, const struct process_end *end)
{
    lock_take(&record->lock);
    record->is_over = record->is_left = true;
    record->end = *end;
    record_wake_readers(record);
    lock_release(&record->lock);
}

/* Locked. The window may begin before the range on disk, or the other way round. */
static struct record_stream record_extent(const struct record *record, int stream)
{
    const struct window *window = &record->streams[stream].window;
    const struct spool *spool = &record->streams[stream].spool;
    struct record_stream ret = {
        .total = window->end,
        .head_end = window->start == 0 ? window->end : 0,
        .tail_start = window->start,
    };

    if (spool->fd < 0)
        return ret;
    if (ret.head_end < spool_head_end(spool))
        ret.head_end = spool_head_end(spool);
    if (spool->end >= window->start && spool_tail_start(spool) < ret.tail_start)
        ret.tail_start = spool_tail_start(spool);
    if (ret.tail_start < ret.head_end)
        ret.tail_start = ret.head_end;
    return ret;
}

void record_get(struct record *record, struct record_info *ret)
{
    lock_take(&record->lock);
    *ret = (struct record_info){
        .id = record->id,
        .spec = record->spec,
        .pid = record->pid,
        .restarts = record->restarts,
        .address = record->address,
        .started_ms = record->started_ms,
        .ended_ms = record->ended_ms,
        .is_over = record->is_over,
        .end = record->end,
    };
    for (int i = 0; i < PROCESS_STREAMS; i++)
        ret->streams[i] = record_extent(record, i);
    lock_release(&record->lock);
}

size_t record_copy_times(struct record *record, enum output_stream stream, struct output_mark **ret)
{
    const struct output_times *times = &record->streams[stream].times;
    size_t count;

    lock_take(&record->lock);
    count = times->count;
    *ret = xcalloc(count + 1, sizeof(**ret));
    if (count > 0)
        memcpy(*ret, times->marks, count * sizeof(**ret));
    lock_release(&record->lock);
    return count;
}
