// SPDX-License-Identifier: Apache-2.0
/* Readers of a process's output, which is in memory or, if older, on disk. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"

void reader_wake(const struct output_reader *reader)
{
    const uint64_t one = 1;

    (void)!write(reader->event_fd, &one, sizeof(one));
}

/* Locked. */
static int reader_check_offsets(const struct record *record, const uint64_t *from, struct err *err)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (from[i] > record->streams[i].window.end)
            return err_set(err, ERR_INVALID,
                           "offset %llu is beyond the end of %s of process '%s' (%llu bytes)",
                           (unsigned long long)from[i], i == PROCESS_OUT ? "stdout" : "stderr",
                           record->id, (unsigned long long)record->streams[i].window.end);
    return 0;
}

int reader_open(struct record *record, const struct reader_spec *spec, struct output_reader **ret,
                struct err *err)
{
    cleanup_close int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct output_reader *reader;
    int r;

    if (event_fd < 0)
        return err_sys(err, -errno, "create an eventfd");
    lock_take(&record->lock);
    r = reader_check_offsets(record, spec->from, err);
    if (r == 0) {
        reader = xcalloc(1, sizeof(*reader));
        *reader = (struct output_reader){
            .record = record_ref(record),
            .next = record->readers,
            .follows = spec->follows,
            .is_flow = spec->is_flow,
            .has_sizes = spec->has_sizes,
            .event_fd = TAKE_FD(event_fd),
            .at = { spec->from[PROCESS_OUT], spec->from[PROCESS_ERR] },
            .replay_end = spec->hides_queries && record->spec->has_terminal
                              ? record->streams[PROCESS_OUT].window.end
                              : 0,
        };
        record->readers = reader;
        *ret = reader;
    }
    lock_release(&record->lock);
    return r;
}

/* A read from disk, which happens without the record's lock because it may block. */
struct read_job {
    const struct spool *spool; /* NULL: nothing to read */
    uint64_t end;
};

/* Locked. Returns whether the stream has data, a gap, or a job that reads data. */
static bool reader_peek(const struct output_reader *reader, int stream, void *data, size_t size,
                        struct reader_event *ret, struct read_job *job)
{
    const struct window *window = &reader->record->streams[stream].window;
    const struct spool *spool = &reader->record->streams[stream].spool;
    uint64_t at = reader->at[stream];

    if (at >= window->end)
        return false;
    *ret = (struct reader_event){ .kind = READER_DATA, .stream = stream, .offset = at };
    if (at >= window->start) {
        ret->len = window_copy(window, at, data, size);
    } else if (spool_has(spool, at)) {
        *job = (struct read_job){ spool, spool->end };
    } else {
        uint64_t next = spool_has(spool, spool_tail_start(spool)) && at < spool_tail_start(spool)
                            ? spool_tail_start(spool)
                            : window->start;

        ret->kind = READER_GAP;
        ret->missing = next - at;
    }
    return true;
}

/* Reads from disk. Data that was overwritten meanwhile gives an empty event, and is looked up
 * again. */
static int read_job_run(const struct output_reader *reader, const struct read_job *job, void *data,
                        size_t size, struct reader_event *event)
{
    ssize_t n = spool_read(job->spool, event->offset, job->end, data, size);

    if (n <= 0)
        return n < 0 ? (int)n : -EIO;
    lock_take(&reader->record->lock);
    event->len = spool_has(job->spool, event->offset) ? (size_t)n : 0;
    lock_release(&reader->record->lock);
    return 0;
}

static void reader_advance(struct output_reader *reader, const struct reader_event *event)
{
    struct process *writer;

    lock_take(&reader->record->lock);
    reader->at[event->stream] += event->kind == READER_GAP ? event->missing : event->len;
    writer = reader->is_flow ? reader->record->writer : NULL;
    if (writer)
        process_ref(writer);
    lock_release(&reader->record->lock);
    if (!writer)
        return;
    process_acknowledge(writer);
    process_unref(writer);
}

/* Hides the requests in the held bytes and those behind them. Leaves no data if all of it is held
 * back for the next read, which there is before the end of the replay. */
static void reader_hide_queries(struct output_reader *reader, char *data,
                                struct reader_event *event)
{
    uint64_t start = event->offset - reader->held_len;
    size_t len = reader->held_len + event->len, old = len, done;
    bool is_last = start + len >= reader->replay_end;

    if (is_last)
        old = reader->replay_end > start ? (size_t)(reader->replay_end - start) : 0;
    done = terminal_query_hide(&reader->filter, data, old, is_last);
    event->offset = start;
    event->len = is_last ? len : done;
    reader->held_len = is_last ? 0 : old - done;
    memcpy(reader->held, data + done, reader->held_len);
    if (is_last)
        reader->replay_end = 0;
}

/* Locked. Returns whether the terminal has another size than the one reported last. */
static bool reader_take_size(struct output_reader *reader, struct reader_event *ret)
{
    struct terminal_size size = reader->record->size;

    if (!reader->has_sizes || size.rows == 0 ||
        (size.rows == reader->size.rows && size.columns == reader->size.columns))
        return false;
    reader->size = size;
    *ret = (struct reader_event){ .kind = READER_SIZE, .size = size };
    return true;
}

/* Returns 1 with an event, 0 if there is none yet, -EAGAIN to try again, or -errno. */
static int reader_try_next(struct output_reader *reader, void *data, size_t size,
                           struct reader_event *ret)
{
    struct record *record = reader->record;
    size_t held = reader->replay_end > 0 ? reader->held_len : 0;
    struct read_job job = { .spool = NULL };
    char *room = (char *)data + held;
    bool has_event = false;
    int r = 0;

    memcpy(data, reader->held, held);
    lock_take(&record->lock);
    if (reader_take_size(reader, ret)) {
        lock_release(&record->lock);
        return 1;
    }
    for (int i = 0; i < PROCESS_STREAMS && !has_event; i++)
        has_event = reader_peek(reader, i, room, size - held, ret, &job);
    if (!has_event && (record->is_over || !reader->follows)) {
        *ret = (struct reader_event){ .kind = record->is_over ? READER_ENDED : READER_UP_TO_DATE,
                                      .end = record->end };
        lock_release(&record->lock);
        return 1;
    }
    lock_release(&record->lock);
    if (!has_event)
        return 0;
    if (job.spool)
        r = read_job_run(reader, &job, room, size - held, ret);
    if (r < 0)
        return r;
    if (ret->kind == READER_DATA && ret->len == 0)
        return -EAGAIN;
    reader_advance(reader, ret);
    if (reader->replay_end > 0 && ret->kind == READER_DATA && ret->stream == PROCESS_OUT)
        reader_hide_queries(reader, data, ret);
    else
        reader->held_len = 0; /* a gap: the sequence has no end */
    return ret->kind == READER_DATA && ret->len == 0 ? -EAGAIN : 1;
}

static int reader_wait(const struct output_reader *reader, int watch_fd, int timeout_ms)
{
    struct pollfd fds[2] = {
        { .fd = reader->event_fd, .events = POLLIN },
        { .fd = watch_fd, .events = POLLRDHUP },
    };
    uint64_t count;
    int r = poll(fds, 2, timeout_ms);

    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    if (r == 0)
        return -ETIMEDOUT;
    if (fds[1].revents)
        return -ECANCELED;
    (void)!read(reader->event_fd, &count, sizeof(count));
    return 0;
}

/* Returns the remaining time for poll, at most a minute. */
static int poll_timeout(uint64_t deadline_ms)
{
    const uint64_t longest_ms = 60000;
    uint64_t now_ms = clock_ms();
    uint64_t left_ms = now_ms < deadline_ms ? deadline_ms - now_ms : 0;

    return (int)(left_ms < longest_ms ? left_ms : longest_ms);
}

int reader_next_within(struct output_reader *reader, int watch_fd, uint64_t timeout_ms, void *data,
                       size_t size, struct reader_event *ret)
{
    uint64_t deadline_ms = timeout_ms ? clock_ms() + timeout_ms : UINT64_MAX;

    for (;;) {
        int r = reader_try_next(reader, data, size, ret);

        if (r > 0)
            return 0;
        if (r == 0)
            r = reader_wait(reader, watch_fd, poll_timeout(deadline_ms));
        if (r == -ETIMEDOUT && poll_timeout(deadline_ms) > 0)
            continue;
        if (r < 0 && r != -EAGAIN)
            return r;
    }
}

int reader_next(struct output_reader *reader, int watch_fd, void *data, size_t size,
                struct reader_event *ret)
{
    return reader_next_within(reader, watch_fd, 0, data, size, ret);
}

void reader_close(struct output_reader *reader)
{
    struct output_reader **slot;
    struct process *writer;

    if (!reader)
        return;
    lock_take(&reader->record->lock);
    slot = &reader->record->readers;
    while (*slot != reader)
        slot = &(*slot)->next;
    *slot = reader->next;
    writer = reader->is_flow ? reader->record->writer : NULL;
    if (writer)
        process_ref(writer);
    lock_release(&reader->record->lock);
    /* The process no longer waits for this reader. */
    if (writer) {
        process_acknowledge(writer);
        process_unref(writer);
    }
    (void)fd_close(reader->event_fd);
    record_unref(reader->record);
    free(reader);
}

static bool record_copy_end(struct record *record, struct process_end *ret)
{
    bool over;

    lock_take(&record->lock);
    over = record->is_over;
    *ret = record->end;
    lock_release(&record->lock);
    return over;
}

static int reader_wait_end(const struct output_reader *reader, int watch_fd, uint64_t deadline_ms,
                           struct process_end *ret)
{
    while (!record_copy_end(reader->record, ret)) {
        int left_ms = poll_timeout(deadline_ms), r;

        if (left_ms == 0)
            return -ETIMEDOUT;
        r = reader_wait(reader, watch_fd, left_ms);
        if (r < 0 && r != -ETIMEDOUT)
            return r;
    }
    return 0;
}

/* Uses a reader that reads nothing, as every reader is woken at the end. */
int record_wait(struct record *record, int watch_fd, uint64_t timeout_ms, struct process_end *ret)
{
    const struct reader_spec spec = { .follows = true };
    struct output_reader *reader = NULL;
    struct err ignored;
    int r = reader_open(record, &spec, &reader, &ignored);

    if (!reader)
        return r;
    r = reader_wait_end(reader, watch_fd, timeout_ms ? clock_ms() + timeout_ms : UINT64_MAX, ret);
    reader_close(reader);
    return r;
}
