/* An ssh-agent whose keys sign only for servers that they are bound to. Does no input or output.
 *
 * A client first proves to which server it talks (session-bind@openssh.com, OpenSSH 8.9 and later):
 * it passes the server's host key and that key's signature of the session. Then it may have one
 * thing signed: a login in this very session, by a key that is bound to this host key. The sandbox
 * cannot make such a proof for another server, so a key can be used for no other. */
#pragma once

#include "ssh/key.h"

struct buf;

enum {
    SSH_AGENT_MESSAGE_MAX = 32 * 1024, /* of a client, without its length */
    SSH_AGENT_REPLY_MAX = 256 * 1024,
    SSH_COMMENT_MAX = 64,
    SSH_HOST_KEYS_MAX = 16, /* of one key */
};

struct ssh_agent_key {
    struct ssh_key key;
    char comment[SSH_COMMENT_MAX + 1];
    struct ssh_public *hosts; /* it signs for servers with one of these keys */
    size_t host_count;
};

struct ssh_agent {
    struct ssh_agent_key *keys;
    size_t count;
};

/* Frees the keys. */
void ssh_agent_done(struct ssh_agent *agent);

/* One connection of a client. */
struct ssh_agent_session {
    bool is_bound;
    bool is_spoiled; /* a bind was refused: nothing is signed any more */
    unsigned char id[SSH_SESSION_MAX];
    size_t id_len;
    struct ssh_public host;
};

/* What an answer did, for the log. */
struct ssh_agent_event {
    const struct ssh_agent_key *key; /* that signed, or was to; NULL: none */
    const char *refusal; /* why nothing was signed; NULL: it was, or nothing was asked */
};

/* Answers one message, given without its length; appends the reply with its length. Returns 0 or
 * -ENOBUFS. A message that is malformed or not known is answered with a failure. */
int ssh_agent_answer(const struct ssh_agent *agent, struct ssh_agent_session *session,
                     struct ssh_bytes message, struct buf *out, struct ssh_agent_event *ret);
