/* What clients ask of files, as requests to a worker. */
#pragma once

#include <jansson.h>

#include "wire/file.h"

struct err;

/* A request and the texts that it points to. */
struct file_call_request {
    const char *sandbox; /* inside the message */
    struct file_request request;
    char path[ENTRY_PATH_MAX + 1]; /* as it was asked */
    char to[ENTRY_PATH_MAX + 1];
    char after[ENTRY_PATH_MAX + 1];
};

/* The message of one of the methods, by the type of its request. `request.user` is inside the
 * message too. */
int file_call_request_parse(const json_t *message, enum file_message_type type,
                            struct file_call_request *ret, struct err *err);

/* The path from the sandbox's root: 0 or -ENAMETOOLONG. */
int file_call_request_absolute(const char *path, char ret[ENTRY_PATH_MAX + 1]);
