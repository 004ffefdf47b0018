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
    /* Buffers a reply that arrives while its request is being sent: libmicrohttpd sends nothing
       before the request is complete. */
    PORT_EARLY_MAX = 1024 * 1024,
};

struct proxied_request {
    struct sandbox *sandbox; /* the request's, attached */
    struct e2b_resets *resets;
    int server_fd;  /* the server's connection; -EBADF: there is none */
    int client_fd;  /* shows that the client has gone */
    bool is_closed; /* the port is closed */
    bool is_chunked;
    bool is_full;     /* the server takes no more of the body */
    size_t discarded; /* of the body, without a receiver */
    struct buf early; /* received from the server, and not parsed */
    struct port_reply reply;
    struct buf body; /* decoded, and not handed on: what came with the head */
    struct e2b_reset reset;
};

/* Replies with the server's reply. The complete request was sent. */
enum MHD_Result proxied_request_answer(struct e2b_request *request,
                                       struct proxied_request *proxied);

/* 502 with the port. */
enum MHD_Result proxied_request_fail(struct e2b_request *request, const char *message);
