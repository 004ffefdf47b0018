/* Requests about files, as requests to a file worker of the sandbox. */
#pragma once

#include "wire/file.h"
#include "wire/holt_v1.h"

struct call;
struct err;
struct file_call;
struct sandbox;

/* Points into the message. */
struct file_ask {
    const char *sandbox;
    struct file_request request;
};

/* The fields that all messages about files have, and others of the request. */
#define FILE_ASK(message, ...)                                                                     \
    {                                                                                              \
        .sandbox = (message)->sandbox_id, .request = {                                             \
            .path = path_of((message)->path, &(message)->raw_path),                                \
            .to = "",                                                                              \
            .after = "",                                                                           \
            .user = (message)->user,                                                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* A flag of the request that is set if the field is true. */
#define FILE_FLAG(field, flag) ((field) ? (uint32_t)(flag) : 0)

/* Sends the request to a worker. The caller drops the sandbox and closes the call, whichever is
 * there, also after an error, the call first. */
int file_ask_send(const struct call *call, const struct file_ask *ask, struct sandbox **ret_sandbox,
                  struct file_call **ret, struct err *err);

/* Makes the path of the request absolute: 0, or ERR_INVALID if it is missing or too long. */
int file_ask_absolute(const char *path, char ret[ENTRY_PATH_MAX + 1], struct err *err);
