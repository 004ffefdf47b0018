// SPDX-License-Identifier: Apache-2.0
#include "cli/core/transfer.h"

#include "base/cleanup.h"
#include "cli/core/connect.h"
#include "cli/core/result.h"
#include "holt.h"

enum { ASK_EVERY_MS = 200 };

static void transfer_ask(struct transfer_watch *watch, struct holt *holt)
{
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct progress *progress = &watch->progress;
    struct holt_error error;

    if (holt_sandbox_get(holt, watch->sandbox, HOLT_NO_DEADLINE, &sandbox, &error) < 0 ||
        sandbox->transfer_total_bytes == 0)
        return;
    progress->total = sandbox->transfer_total_bytes;
    if (sandbox->transfer_done_bytes > progress->done)
        progress_add(progress, sandbox->transfer_done_bytes - progress->done);
}

static void transfer_main(void *argument)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct transfer_watch *watch = argument;

    if (connection_open_quietly(&connection) < 0)
        return;
    while (worker_rest(&watch->worker, ASK_EVERY_MS, 0))
        transfer_ask(watch, connection.holt);
}

void transfer_watch_begin(struct transfer_watch *watch, const char *label, const char *sandbox)
{
    *watch = (struct transfer_watch){ .sandbox = sandbox };
    progress_begin(&watch->progress, label, 0);
    worker_init(&watch->worker, LOCK_TRANSFER);
    if (watch->progress.is_shown)
        (void)thread_start(&watch->worker.thread, "holt-progress", transfer_main, watch);
}

void transfer_watch_end(struct transfer_watch *watch)
{
    worker_stop(&watch->worker);
    worker_destroy(&watch->worker);
    progress_end(&watch->progress);
}
