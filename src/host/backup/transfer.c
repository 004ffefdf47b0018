// SPDX-License-Identifier: Apache-2.0
#include "host/backup/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/thread.h"
#include "host/backup/remote_store.h"
#include "host/bundle/export.h"
#include "host/bundle/import.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/bundle/bundle.h"

enum { PIPE_BYTES = 1 << 20 };

static void progress_begin(struct sandbox *sandbox, uint64_t total)
{
    if (!sandbox)
        return;
    atomic_store(&sandbox->transfer_done, 0);
    atomic_store(&sandbox->transfer_total, total);
}

static void progress_add(struct sandbox *sandbox, size_t len)
{
    if (sandbox)
        atomic_fetch_add_explicit(&sandbox->transfer_done, len, memory_order_relaxed);
}

/* Fails when nobody wants the transfer any more. */
static int transfer_continues(struct host *host, struct sandbox *sandbox, struct err *err)
{
    bool is_destroyed = false;
    int r = host_is_open(host, err);

    if (r == 0 && sandbox) {
        lock_take(&sandbox->lock);
        is_destroyed = sandbox->info.state == SANDBOX_DESTROYING;
        lock_release(&sandbox->lock);
    }
    return is_destroyed ? err_refuse(err, CAUSE_SESSION_DESTROYING,
                                     "sandbox '%s' is being destroyed", sandbox->info.id)
                        : r;
}

struct sending {
    struct sandbox *sandbox;
    struct archive_writer *writer;
    struct err err; /* of the archive; the export knows only that its writer failed */
};

static int part_send(void *context, const void *data, size_t len)
{
    struct sending *sending = context;
    int r = transfer_continues(sending->sandbox->host, sending->sandbox, &sending->err);

    if (r == 0)
        r = archive_write(sending->writer, data, len, &sending->err);
    progress_add(sending->sandbox, len);
    return r;
}

int transfer_out(struct sandbox *sandbox, struct export *export,
                 const struct transfer_target *target, struct archive_info *ret, struct err *err)
{
    struct sending sending = { .sandbox = sandbox };
    struct archive_info info = { 0 };
    int r;

    r = archive_writer_open(target->store, &sending.writer, err);
    if (r < 0)
        return r;
    progress_begin(sandbox, export_size(export));
    r = export_write(export, part_send, &sending, err);
    if (r < 0 && sending.err.kind != ERR_NONE)
        *err = sending.err;
    fault_point("transfer.written");
    if (r == 0)
        r = archive_writer_finish(sending.writer, target->name, target->description, &info, err);
    archive_writer_close(sending.writer);
    progress_begin(sandbox, 0);
    if (r < 0)
        return r;
    if (ret)
        *ret = info;
    else
        archive_info_done(&info);
    return 0;
}

struct receiving {
    struct host *host;
    struct sandbox *sandbox;
    const struct archive_store *store;
    const char *name;
    struct thread thread;
    int fd; /* where the bundle is written */
    int result;
    struct err err;
};

static int part_receive(void *context, const void *data, size_t len)
{
    struct receiving *receiving = context;
    int r = transfer_continues(receiving->host, receiving->sandbox, &receiving->err);

    if (r == 0)
        r = write_all(receiving->fd, data, len);
    progress_add(receiving->sandbox, len);
    return r;
}

static void receive_main(void *argument)
{
    struct receiving *receiving = argument;
    struct err err = { 0 };

    receiving->result =
        archive_read(receiving->store, receiving->name, part_receive, receiving, &err);
    if (receiving->result < 0 && receiving->err.kind == ERR_NONE)
        receiving->err = err;
    receiving->fd = fd_close(receiving->fd);
}

/* The bundle is unpacked while it is read. If the unpacking fails, the reader gets EPIPE, which
 * says nothing; otherwise its error is the cause of the other. */
int transfer_in(struct host *host, struct sandbox *sandbox, const struct archive_store *store,
                const char *name, struct bundle_spool *ret, struct err *err)
{
    struct receiving receiving = { host, sandbox, store, name, .fd = -EBADF };
    struct archive_info info = { 0 };
    int pipe[2], r = archive_find(store, name, &info, err);

    if (r < 0)
        return r;
    progress_begin(sandbox, info.size);
    archive_info_done(&info);
    if (pipe2(pipe, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "make a pipe");
    (void)fcntl(pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    receiving.fd = pipe[1];
    r = thread_start(&receiving.thread, "holt-fetch", receive_main, &receiving);
    if (r < 0) {
        (void)fd_close(pipe[0]);
        (void)fd_close(pipe[1]);
        return err_sys(err, r, "start a thread");
    }
    r = import_receive(host, pipe[0], ret, err);
    thread_join(&receiving.thread);
    progress_begin(sandbox, 0);
    if (receiving.result < 0 && receiving.result != -EPIPE) {
        if (r == 0)
            bundle_spool_done(ret);
        *err = receiving.err;
        r = receiving.result;
    }
    return r;
}
