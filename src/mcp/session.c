// SPDX-License-Identifier: Apache-2.0
#include "mcp/session.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/limits.h"
#include "toolbox/tool.h"

enum {
    EARLY_MAX = 16,       /* cancellations that are remembered until their request comes, */
    EARLY_MS = 60 * 1000, /* for so long: most are late, and an id may come again */
};

struct early {
    json_t *id;
    uint64_t until_ns;
};

struct mcp_sessions {
    struct host *host;
    struct lock lock; /* protects the list and the fields marked so */
    struct mcp_session *first;
    unsigned count;
};

struct mcp_session {
    struct mcp_sessions *sessions;
    char id[MCP_SESSION_ID_LEN + 1];
    unsigned char owner[MCP_OWNER_BYTES];
    struct caller caller;
    char *sandbox, *template;
    bool is_read_only, may_batch;
    struct lock making; /* held while the sandbox is created */

    struct mcp_session *next; /* from here on: the table's lock */
    unsigned refs;            /* of requests; the table itself is one more */
    bool is_ended;
    uint64_t used_ns;
    char made[SANDBOX_ID_MAX]; /* the id of the sandbox that was made for it; "": none yet */
    struct mcp_slot *slots;
    struct early early[EARLY_MAX];
    unsigned early_next;
};

struct host *mcp_sessions_host(const struct mcp_sessions *sessions)
{
    return sessions->host;
}

struct mcp_sessions *mcp_sessions_new(struct host *host)
{
    struct mcp_sessions *sessions = xcalloc(1, sizeof(*sessions));

    sessions->host = host;
    lock_init(&sessions->lock, LOCK_MCP_SESSIONS);
    return sessions;
}

static void session_free(struct mcp_session *session)
{
    for (size_t i = 0; i < EARLY_MAX; i++)
        json_decref(session->early[i].id);
    lock_destroy(&session->making);
    free(session->sandbox);
    free(session->template);
    free(session);
}

/* Removes the session from the list. The last reference frees it. Needs the lock. */
static void forget(struct mcp_session *session)
{
    struct mcp_session **slot = &session->sessions->first;

    if (session->is_ended)
        return;
    session->is_ended = true;
    while (*slot != session)
        slot = &(*slot)->next;
    *slot = session->next;
    session->sessions->count--;
    if (session->refs == 0)
        session_free(session);
}

void mcp_sessions_free(struct mcp_sessions *sessions)
{
    if (!sessions)
        return;
    while (sessions->first)
        forget(sessions->first);
    lock_destroy(&sessions->lock);
    free(sessions);
}

static bool is_expired(const struct mcp_session *session, uint64_t now)
{
    return session->refs == 0 && now - session->used_ns > (uint64_t)MCP_IDLE_MS * 1000000;
}

/* Returns the owner of more than half of all sessions, or NULL: Boyer-Moore majority vote. Needs
 * the lock. */
static const unsigned char *hoarder_find(const struct mcp_sessions *sessions)
{
    const unsigned char *most = NULL;
    unsigned left = 0, own = 0;

    for (const struct mcp_session *each = sessions->first; each; each = each->next) {
        if (left == 0)
            most = each->owner;
        if (memcmp(most, each->owner, MCP_OWNER_BYTES) == 0)
            left++;
        else
            left--;
    }
    for (const struct mcp_session *each = sessions->first; each; each = each->next)
        own += memcmp(most, each->owner, MCP_OWNER_BYTES) == 0;
    return own > sessions->count / 2 ? most : NULL;
}

/* Returns the least recently used session, of this owner (NULL: of all). Needs the lock. */
static struct mcp_session *oldest_find(const struct mcp_sessions *sessions,
                                       const unsigned char *owner)
{
    struct mcp_session *oldest = NULL;

    for (struct mcp_session *each = sessions->first; each; each = each->next)
        if (each->refs == 0 && (!owner || memcmp(owner, each->owner, MCP_OWNER_BYTES) == 0) &&
            (!oldest || each->used_ns < oldest->used_ns))
            oldest = each;
    return oldest;
}

/* Makes room: removes expired sessions, or else the least recently used one, of the owner with a
 * majority if there is one, so that one client cannot evict all others. Returns false when all are
 * in use. Needs the lock. */
static bool make_room(struct mcp_sessions *sessions)
{
    uint64_t now = clock_ns();
    struct mcp_session *next, *oldest;

    for (struct mcp_session *each = sessions->first; each; each = next) {
        next = each->next;
        if (is_expired(each, now))
            forget(each);
    }
    if (sessions->count < MCP_SESSIONS_MAX)
        return true;
    oldest = oldest_find(sessions, hoarder_find(sessions));
    if (!oldest)
        oldest = oldest_find(sessions, NULL);
    if (oldest)
        forget(oldest);
    return oldest != NULL;
}

/* Keeps an owner within its share, whatever number of tokens it has: its least recently used
 * session makes room. Returns false when all of them are in use. Needs the lock. */
static bool share_check(struct mcp_sessions *sessions, const char *owner)
{
    const size_t share = owner_share(owner, MCP_SESSIONS_MAX);
    struct mcp_session *oldest = NULL;
    size_t count = 0;

    if (share == MCP_SESSIONS_MAX)
        return true; /* make_room is fair to the clients of one owner */
    for (struct mcp_session *each = sessions->first; each; each = each->next) {
        if (strcmp(each->caller.owner, owner) != 0)
            continue;
        count++;
        if (each->refs == 0 && (!oldest || each->used_ns < oldest->used_ns))
            oldest = each;
    }
    if (count < share)
        return true;
    if (oldest)
        forget(oldest);
    return oldest != NULL;
}

static struct mcp_session *session_new(struct mcp_sessions *sessions,
                                       const struct mcp_session_spec *spec)
{
    struct mcp_session *session = xcalloc(1, sizeof(*session));

    session->sessions = sessions;
    memcpy(session->owner, spec->owner, sizeof(session->owner));
    session->caller = *spec->caller;
    session->sandbox = spec->sandbox ? xstrdup(spec->sandbox) : NULL;
    session->template = spec->template ? xstrdup(spec->template) : NULL;
    session->is_read_only = spec->is_read_only;
    session->may_batch = spec->may_batch;
    session->refs = 1;
    lock_init(&session->making, LOCK_MCP_SANDBOX);
    return session;
}

int mcp_session_open(struct mcp_sessions *sessions, const struct mcp_session_spec *spec,
                     struct mcp_session **ret, struct err *err)
{
    unsigned char bytes[MCP_SESSION_ID_LEN / 2];
    struct mcp_session *session = NULL;

    if (random_bytes(bytes, sizeof(bytes)) < 0)
        return err_sys(err, -EIO, "get random bytes");
    lock_take(&sessions->lock);
    if (share_check(sessions, spec->caller->owner) && make_room(sessions)) {
        session = session_new(sessions, spec);
        hex_encode(bytes, sizeof(bytes), session->id);
        session->next = sessions->first;
        sessions->first = session;
        sessions->count++;
    }
    lock_release(&sessions->lock);
    if (!session)
        return err_set(err, ERR_EXHAUSTED, "there are %zu sessions, and all are in use",
                       owner_share(spec->caller->owner, MCP_SESSIONS_MAX));
    *ret = session;
    return 0;
}

/* Locked. */
static struct mcp_session *lookup(const struct mcp_sessions *sessions, const char *id,
                                  const unsigned char *owner)
{
    uint64_t now = clock_ns();

    for (struct mcp_session *each = sessions->first; each; each = each->next)
        if (CRYPTO_memcmp(each->id, id, MCP_SESSION_ID_LEN) == 0)
            return CRYPTO_memcmp(each->owner, owner, MCP_OWNER_BYTES) == 0 && !is_expired(each, now)
                       ? each
                       : NULL;
    return NULL;
}

int mcp_session_find(struct mcp_sessions *sessions, const char *id,
                     const unsigned char owner[MCP_OWNER_BYTES], struct mcp_session **ret,
                     struct err *err)
{
    struct mcp_session *found = NULL;

    if (strlen(id) == MCP_SESSION_ID_LEN) {
        lock_take(&sessions->lock);
        found = lookup(sessions, id, owner);
        if (found)
            found->refs++;
        lock_release(&sessions->lock);
    }
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "there is no such session (any more): initialize again");
    *ret = found;
    return 0;
}

void mcp_session_put(struct mcp_session *session)
{
    struct mcp_sessions *sessions;

    if (!session)
        return;
    sessions = session->sessions;
    lock_take(&sessions->lock);
    session->used_ns = clock_ns();
    if (--session->refs == 0 && session->is_ended)
        session_free(session);
    lock_release(&sessions->lock);
}

const char *mcp_session_id(const struct mcp_session *session)
{
    return session->id;
}

bool mcp_session_is_read_only(const struct mcp_session *session)
{
    return session->is_read_only;
}

bool mcp_session_may_batch(const struct mcp_session *session)
{
    return session->may_batch;
}

/* The call sees a hang-up of its client. Needs the lock. */
static void slot_cancel(struct mcp_slot *slot)
{
    slot->is_cancelled = true;
    if (slot->call)
        tool_cancel(slot->call);
    (void)shutdown(slot->connection_fd, SHUT_RD);
}

static int sandbox_remove(struct mcp_session *session, const char *id, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(session->sessions->host, &session->caller, id, &sandbox, err);

    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return 0;
    return r < 0 ? r : sandbox_destroy(sandbox, err);
}

int mcp_session_end(struct mcp_session *session, struct err *err)
{
    struct mcp_sessions *sessions = session->sessions;
    char made[SANDBOX_ID_MAX];

    lock_take(&session->making); /* a concurrent creation sees that the session is over */
    lock_take(&sessions->lock);
    forget(session);
    for (struct mcp_slot *each = session->slots; each; each = each->next)
        slot_cancel(each);
    memcpy(made, session->made, sizeof(made));
    session->made[0] = '\0';
    lock_release(&sessions->lock);
    lock_release(&session->making);
    return made[0] ? sandbox_remove(session, made, err) : 0;
}

/* The caller holds the creation lock. The sandbox has an idle timeout, so it goes even if the
 * daemon forgets the session. */
static int sandbox_make(struct mcp_session *session, struct sandbox **ret, struct err *err)
{
    const struct label label = { .key = "made-by", .value = "mcp" };
    const struct sandbox_spec spec = {
        .caller = &session->caller,
        .template = session->template,
        .labels = &label,
        .label_count = 1,
        .idle_timeout_ms = MCP_IDLE_MS,
        .idle_action = ACTION_KILL,
    };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    int r;

    if (session->is_ended)
        return err_set(err, ERR_CANCELED, "the session is over");
    r = sandbox_create(session->sessions->host, &spec, ret, err);
    if (r < 0)
        return r;
    sandbox_get_info(*ret, false, &info);
    lock_take(&session->sessions->lock);
    memcpy(session->made, info.id, sizeof(session->made));
    lock_release(&session->sessions->lock);
    return 0;
}

static int sandbox_of_own(struct mcp_session *session, bool may_make, struct sandbox **ret,
                          struct err *err)
{
    int r;

    lock_take(&session->making);
    if (session->made[0])
        r = sandbox_find(session->sessions->host, &session->caller, session->made, ret, err);
    else if (!may_make)
        r = err_set(err, ERR_DENIED,
                    "a read-only client cannot create a sandbox: name one, as /mcp?sandbox=ID");
    else
        r = sandbox_make(session, ret, err);
    lock_release(&session->making);
    return r;
}

int mcp_session_sandbox(struct mcp_session *session, bool may_make, struct sandbox **ret,
                        struct err *err)
{
    return session->sandbox
               ? sandbox_find(session->sessions->host, &session->caller, session->sandbox, ret, err)
               : sandbox_of_own(session, may_make, ret, err);
}

/* Whether the request with this id was cancelled before it came. Locked. */
static bool early_take(struct mcp_session *session, const json_t *id)
{
    uint64_t now = clock_ns();
    bool is_found = false;

    for (size_t i = 0; i < EARLY_MAX; i++) {
        struct early *early = &session->early[i];

        if (!early->id || !json_equal(early->id, id))
            continue;
        is_found |= now < early->until_ns;
        json_decref(early->id);
        early->id = NULL;
    }
    return is_found;
}

void mcp_session_enter(struct mcp_session *session, struct mcp_slot *slot)
{
    lock_take(&session->sessions->lock);
    slot->is_cancelled = early_take(session, slot->id) || session->is_ended;
    slot->next = session->slots;
    session->slots = slot;
    lock_release(&session->sessions->lock);
}

bool mcp_session_begin(struct mcp_session *session, struct mcp_slot *slot, struct tool_call *call)
{
    bool is_cancelled;

    lock_take(&session->sessions->lock);
    slot->call = call;
    is_cancelled = slot->is_cancelled;
    if (is_cancelled && call)
        tool_cancel(call);
    lock_release(&session->sessions->lock);
    return !is_cancelled;
}

bool mcp_session_leave(struct mcp_session *session, struct mcp_slot *slot)
{
    struct mcp_slot **place = &session->slots;

    lock_take(&session->sessions->lock);
    while (*place != slot)
        place = &(*place)->next;
    *place = slot->next;
    lock_release(&session->sessions->lock);
    return slot->is_cancelled;
}

/* Requests and notifications come over different connections, so a cancellation may be here before
 * what it cancels. Locked. */
static void remember_early(struct mcp_session *session, const json_t *id)
{
    struct early *early = &session->early[session->early_next++ % EARLY_MAX];

    json_decref(early->id);
    early->id = json_deep_copy(id);
    early->until_ns = clock_ns() + (uint64_t)EARLY_MS * 1000000;
}

void mcp_session_cancel(struct mcp_session *session, const json_t *id)
{
    bool is_found = false;

    lock_take(&session->sessions->lock);
    for (struct mcp_slot *each = session->slots; each; each = each->next)
        if (json_equal(each->id, id)) {
            slot_cancel(each);
            is_found = true;
        }
    if (!is_found)
        remember_early(session, id);
    lock_release(&session->sessions->lock);
}
