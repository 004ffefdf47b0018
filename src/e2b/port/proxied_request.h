/* A request to a port of a sandbox on its way: what its client sends goes to the server inside, and
 * what that answers comes back, both as they come. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "e2b/core/reset.h"
#include "e2b/port/reply.h"

struct e2b_request;
struct sandbox;

enum {
    /* How long nothing may happen on a connection that was not upgraded. */
    PORT_IDLE_MS = 640 * 1000,
    /* What is kept of an answer that comes while its request is still being sent. libmicrohttpd
     * sends nothing before that has ended. */
    PORT_EARLY_MAX = 1024 * 1024,
};

struct proxied_request {
    struct sandbox *sandbox; /* the request's, attached */
    struct e2b_resets *resets;
    int server_fd;  /* the server's connection; -EBADF: there is none */
    int client_fd;  /* where it is seen that the client has gone */
    bool is_closed; /* nobody listens at the port */
    bool is_chunked;
    bool is_full;     /* the server takes no more of the body */
    size_t discarded; /* of the body, for nobody wanted it */
    struct buf early; /* received from the server, and not parsed */
    struct port_reply reply;
    struct buf body; /* decoded, and not handed on: what came with the head */
    struct e2b_reset reset;
};

/* Answers with what the server says. The whole request was sent. */
enum MHD_Result proxied_request_answer(struct e2b_request *request,
                                       struct proxied_request *proxied);

/* 502 with the port. */
enum MHD_Result proxied_request_fail(struct e2b_request *request, const char *message);
