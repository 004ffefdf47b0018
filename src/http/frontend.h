/* A front end is one protocol that the daemon answers on its listeners: holt.v1, E2B, MCP, pages.
 * The daemon lists its front ends; http/ calls them through this table and knows none of them. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct exchange;

struct frontend_ops {
    const char *name;

    /* Whether the path belongs to this protocol. NULL: only claim() can tell. */
    bool (*owns)(const char *path, const char *verb);

    /* Whether the request belongs to this protocol, decided from its whole header. Takes precedence
     * over owns(). A front end with claim() checks origin and access itself, in begin(). */
    bool (*claim)(struct exchange *exchange);

    /* Whether the request needs no token. NULL: every request needs one on TCP. */
    bool (*is_public)(const struct exchange *exchange);

    /* Whether a login to the console gives access, besides a token. */
    bool has_sessions;

    /* The header is complete and access was granted. May answer at once. NULL: nothing to do. */
    enum MHD_Result (*begin)(struct exchange *exchange);

    /* Takes a piece of the body. NULL: exchange->body collects it, up to its limit. */
    enum MHD_Result (*receive)(struct exchange *exchange, const char *data, size_t len);

    /* The request is complete: sends the reply. */
    enum MHD_Result (*answer)(struct exchange *exchange);

    /* Frees exchange->state once the request is over, answered or not. NULL: nothing to free. */
    void (*close)(struct exchange *exchange);

    /* Whether the idle connection is kept for CONNECTION_KEPT_MS. NULL: no. */
    bool (*is_kept)(const struct exchange *exchange);

    /* Writes the name of a method for /metrics; false behind the last one. NULL: none is counted.
     */
    bool (*method_name)(size_t index, char *ret, size_t size);
};

/* A front end at work. */
struct frontend {
    const struct frontend_ops *ops;
    void *context;       /* the front end's own */
    size_t first_method; /* index of its first method in call_stats; set by http_start */
};
