/* A running holt-image: the end of image/control.h that holtd has. */
#pragma once

#include <jansson.h>
#include <sys/types.h>

struct err;

struct image_helper {
    int fd;
    int pidfd;
    pid_t pid;
};

#define IMAGE_HELPER_INIT                                                                          \
    {                                                                                              \
        .fd = -EBADF, .pidfd = -EBADF                                                              \
    }

int image_helper_start(struct image_helper *helper, struct err *err);

/* Sends a message, which it frees, with a descriptor (-1: none). */
int image_helper_send(struct image_helper *helper, json_t *message, int fd, struct err *err);

/* Receives the next message. */
int image_helper_next(struct image_helper *helper, json_t **ret, struct err *err);

/* Sets the error that a message "failed" describes. Returns like err_set. */
int image_helper_failed(const json_t *message, struct err *err);

/* Reads a message "progress". */
struct template_progress;
int image_helper_progress(const json_t *message, struct template_progress *ret, struct err *err);

/* Ends the process. */
void image_helper_done(struct image_helper *helper);
