// SPDX-License-Identifier: Apache-2.0
#include "host/process/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "host/process/record_internal.h"
#include "host/sandbox/info.h"
#include "wire/frame.h"

enum { CHUNK_BYTES = 64 * 1024, PATH_SIZE = SANDBOX_ID_MAX + RECORD_ID_SIZE + 8 };

static const char *output_path(char path[PATH_SIZE], const char *sandbox,
                               const struct record *record, int stream)
{
    (void)snprintf(path, PATH_SIZE, "%s/%s.%s", sandbox, record->id,
                   stream == PROCESS_OUT ? "out" : "err");
    return path;
}

static int output_file_create(int dir_fd, const char *sandbox, struct record *record, int stream)
{
    struct spool *spool = &record->streams[stream].spool, made = *spool;
    char path[PATH_SIZE];
    int r = spool_create(&made, dir_fd, output_path(path, sandbox, record, stream));

    if (r == -ENOENT && (mkdirat(dir_fd, sandbox, 0700) == 0 || errno == EEXIST))
        r = spool_create(&made, dir_fd, path);
    if (r < 0)
        return r;
    lock_take(&record->lock);
    spool->fd = made.fd;
    lock_release(&record->lock);
    return 0;
}

/* Copies the next unwritten piece and returns its length, 0 if there is none. A copy, as the
 * window may move during the write. */
static size_t record_copy_unwritten(struct record *record, int stream, uint64_t from_bytes,
                                    char *piece, uint64_t *ret_offset)
{
    const struct window *window = &record->streams[stream].window;
    struct spool *spool = &record->streams[stream].spool;
    size_t len = 0;

    lock_take(&record->lock);
    *ret_offset = spool->end;
    if (!spool->is_broken && window->end - spool->end >= from_bytes && window->end > spool->end) {
        len = window_copy(window, spool->end, piece, CHUNK_BYTES);
        spool_reserve(spool, len);
    }
    lock_release(&record->lock);
    return len;
}

static void record_set_written(struct record *record, int stream, size_t len, int r)
{
    struct spool *spool = &record->streams[stream].spool;

    lock_take(&record->lock);
    if (r == 0)
        spool->end += len;
    else
        spool->is_broken = true;
    lock_release(&record->lock);
    if (r < 0)
        log_warn("cannot write the output of process '%s' to disk: %s", record->id, strerror(-r));
}

void output_file_write(int dir_fd, const char *sandbox, struct record *record, int stream,
                       uint64_t from_bytes, bool is_last)
{
    struct spool *spool = &record->streams[stream].spool;
    char piece[CHUNK_BYTES];
    uint64_t offset;
    size_t len;

    if (is_last && spool->fd >= 0)
        from_bytes = 1;
    while ((len = record_copy_unwritten(record, stream, from_bytes, piece, &offset)) > 0) {
        int r = spool->fd < 0 ? output_file_create(dir_fd, sandbox, record, stream) : 0;

        if (r == 0)
            r = spool_write(spool, offset, piece, len);
        record_set_written(record, stream, len, r);
        from_bytes = 1; /* write the rest too */
    }
}

void output_files_reopen(int dir_fd, const char *sandbox, struct record *record, uint64_t ahead)
{
    lock_take(&record->lock);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        struct spool *spool = &record->streams[i].spool;
        uint64_t end = record->streams[i].window.end;
        char path[PATH_SIZE];

        /* Output that neither the window nor a file has is lost. */
        if (spool_reopen(spool, dir_fd, output_path(path, sandbox, record, i), end, ahead) < 0)
            spool->is_broken = end > 0;
    }
    lock_release(&record->lock);
}

void output_files_recover(int dir_fd, const char *sandbox, struct record *record)
{
    lock_take(&record->lock);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        struct spool *spool = &record->streams[i].spool;
        char path[PATH_SIZE];

        if (spool_recover(spool, dir_fd, output_path(path, sandbox, record, i)) == 0)
            window_init(&record->streams[i].window, FRAME_WINDOW, spool->end);
    }
    lock_release(&record->lock);
}

void output_files_remove(int dir_fd, const char *sandbox, const struct record *record)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        char path[PATH_SIZE];

        if (record->streams[i].spool.fd >= 0)
            (void)unlinkat(dir_fd, output_path(path, sandbox, record, i), 0);
    }
}
