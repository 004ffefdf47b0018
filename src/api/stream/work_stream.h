/* A stream whose call does its work in a thread of its own, as the stream must report progress
 * meanwhile. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/thread.h"
#include "http/stream.h"
#include "store/template/template.h"
#include "wire/holt_v1.h"

struct work_stream;

struct work_ops {
    const char *thread_name;

    /* Does the work, in the thread. Returns 0, or a negative errno with err set. */
    int (*run)(struct work_stream *work, struct err *err);

    /* Append a message: how far the work is, or, after a success, the last one. Under the lock. */
    int (*tell)(struct work_stream *work, struct buf *out);
    int (*finish)(struct work_stream *work, struct buf *out);

    /* Asks the work to end, as the client has gone. NULL: it goes on without the client. */
    void (*cancel)(struct work_stream *work);

    /* Frees what the stream has, and itself. */
    void (*free)(struct work_stream *work);
};

/* The first member of the struct of such a stream, which is zero otherwise. */
struct work_stream {
    struct stream stream;
    const struct work_ops *ops;
    struct thread thread;

    struct lock lock; /* over everything below */
    struct cond over;
    bool is_over;
    int result;
    struct err err; /* of a failure */
    struct template_progress progress;
};

/* Initialises the stream; work_stream_done undoes it. */
void work_stream_init(struct work_stream *work, const struct work_ops *ops);
void work_stream_done(struct work_stream *work);

/* Starts the thread. The stream then frees itself when it is closed. */
int work_stream_start(struct work_stream *work, struct stream **ret, struct err *err);

/* A template_progress_fn with the stream as its context. */
void work_stream_progress(const struct template_progress *progress, void *context);

/* Returns the present progress as a message. */
struct msg_import_progress work_stream_message(const struct work_stream *work);
