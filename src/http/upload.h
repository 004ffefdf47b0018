/* A client stream: many messages in, one out. They are handed over as they come, so a service that
 * takes its time holds the client back, and none is ever kept. */
#pragma once

#include <jansson.h>

struct err;
struct upload;

struct upload_ops {
    /* Takes the next message; what it does not take back waits. 0, or a negative errno with err
     * set, after which the rest of the stream is not looked at. */
    int (*message)(struct upload *upload, const json_t *message, struct err *err);

    /* The client has said all. *ret_reply left NULL stands for an empty message. */
    int (*finish)(struct upload *upload, json_t **ret_reply, struct err *err);

    /* Called once, whatever has happened; without finish before it, the client went away or one of
     * the two failed, and what was begun is undone. */
    void (*close)(struct upload *upload);

    /* Takes bytes as they are, of a client that has the connection. NULL where none can. */
    int (*data)(struct upload *upload, const char *data, size_t len, struct err *err);
};

/* Every upload's own struct has this first. */
struct upload {
    const struct upload_ops *ops;
};
