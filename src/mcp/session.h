/* Sessions of /mcp, from initialize to DELETE or an hour without use. A session belongs to the
 * token that opened it, is about one sandbox, and lists its calls in progress, because another
 * request may cancel them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct caller;
struct err;
struct host;
struct mcp_session;
struct mcp_sessions;
struct sandbox;
struct tool_call;

enum {
    MCP_SESSIONS_MAX = 1024,
    MCP_SESSION_ID_LEN = 32,
    MCP_OWNER_BYTES = 32,
    MCP_IDLE_MS = 60 * 60 * 1000,
};

struct mcp_sessions *mcp_sessions_new(struct host *host);

struct host *mcp_sessions_host(const struct mcp_sessions *sessions);

/* No request may be under way. Sandboxes that were made for sessions stay until they are idle.
 * Accepts NULL. */
void mcp_sessions_free(struct mcp_sessions *sessions);

struct mcp_session_spec {
    unsigned char owner[MCP_OWNER_BYTES]; /* the owner, see mcp_session_find */
    const struct caller *caller;          /* on whose behalf */
    const char *sandbox;                  /* id or name; NULL: one is made at the first call */
    const char *template;                 /* of that one; NULL: the daemon's default */
    bool is_read_only;                    /* only such tools are wanted */
    bool may_batch;                       /* its revision of the protocol knows batches */
};

/* Return a reference that the caller puts back. Fail with ERR_EXHAUSTED, or ERR_NOT_FOUND for an id
 * that is unknown, expired or another owner's, with the same text. */
int mcp_session_open(struct mcp_sessions *sessions, const struct mcp_session_spec *spec,
                     struct mcp_session **ret, struct err *err);
int mcp_session_find(struct mcp_sessions *sessions, const char *id,
                     const unsigned char owner[MCP_OWNER_BYTES], struct mcp_session **ret,
                     struct err *err);

/* Accepts NULL. */
void mcp_session_put(struct mcp_session *session);

const char *mcp_session_id(const struct mcp_session *session);
bool mcp_session_is_read_only(const struct mcp_session *session);
bool mcp_session_may_batch(const struct mcp_session *session);

/* Ends the session: cancels its calls and removes a sandbox that was created for it. */
int mcp_session_end(struct mcp_session *session, struct err *err);

/* Its sandbox, with a reference: made if need be and allowed. */
int mcp_session_sandbox(struct mcp_session *session, bool may_make, struct sandbox **ret,
                        struct err *err);

/* A call that is under way. */
struct mcp_slot {
    json_t *id; /* of its request */
    int connection_fd;
    struct tool_call *call; /* NULL: it has not begun yet */
    bool is_cancelled;
    struct mcp_slot *next;
};

/* From here on it can be cancelled; it may be already, by a notification that was faster. */
void mcp_session_enter(struct mcp_session *session, struct mcp_slot *slot);

/* The call has begun: false when it is cancelled. */
bool mcp_session_begin(struct mcp_session *session, struct mcp_slot *slot, struct tool_call *call);

/* Before the call is closed: whether it was cancelled. */
bool mcp_session_leave(struct mcp_session *session, struct mcp_slot *slot);

/* The client does not want an answer to its request with this id any more. */
void mcp_session_cancel(struct mcp_session *session, const json_t *id);
