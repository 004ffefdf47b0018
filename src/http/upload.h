/* A client stream: many messages in, one out. Each message is handed over as it arrives and is
 * never stored, so a slow service exerts back-pressure on the client. */
#pragma once

#include <jansson.h>

struct buf;
struct err;
struct upload;

struct upload_ops {
    /* Handles the next message. On a negative errno, with err set, the rest of the stream is
     * ignored. */
    int (*message)(struct upload *upload, const json_t *message, struct err *err);

    /* The client has sent everything: appends the JSON of the reply to out. No text stands for an
     * empty message. */
    int (*finish)(struct upload *upload, struct buf *out, struct err *err);

    /* Frees the upload. Called once in every case. Without an earlier finish() the client went away
     * or a call failed, and the upload undoes what it has done. */
    void (*close)(struct upload *upload);

    /* Handles raw bytes of an upgraded connection. NULL: not supported. */
    int (*data)(struct upload *upload, const char *data, size_t len, struct err *err);
};

/* The first member of every upload's own struct. */
struct upload {
    const struct upload_ops *ops;
};
