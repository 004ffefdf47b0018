/* The services: message in, host call, message out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct err;
struct host;
struct stream;

/* What a service may know about the request besides its message. */
struct call {
    struct host *host;
    bool is_local;     /* it came over the unix socket */
    int connection_fd; /* hangs up when the client goes away */
};

/* Answers one message with one. *ret_reply left NULL stands for an empty message. */
typedef int (*unary_fn)(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err);

/* Answers one message with a stream. The request is gone when the stream is first read. */
typedef int (*stream_fn)(const struct call *call, const json_t *request, struct stream **ret,
                         struct err *err);

int host_service_health(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err);

int sandbox_service_run(const struct call *call, const json_t *request, struct stream **ret,
                        struct err *err);

int process_service_send_input(const struct call *call, const json_t *request, json_t **ret_reply,
                               struct err *err);
int process_service_signal(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err);
int process_service_resize(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err);

int template_service_import(const struct call *call, const json_t *request, struct stream **ret,
                            struct err *err);
int template_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err);
int template_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err);
