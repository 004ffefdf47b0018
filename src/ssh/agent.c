// SPDX-License-Identifier: Apache-2.0
#include "ssh/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* Messages of the agent protocol. */
enum {
    AGENT_FAILURE = 5,
    AGENT_SUCCESS = 6,
    AGENT_REQUEST_IDENTITIES = 11,
    AGENT_IDENTITIES_ANSWER = 12,
    AGENT_SIGN_REQUEST = 13,
    AGENT_SIGN_RESPONSE = 14,
    AGENT_EXTENSION = 27,
    AGENT_EXTENSION_FAILURE = 28,
};

enum { USERAUTH_REQUEST = 50 };

void ssh_agent_done(struct ssh_agent *agent)
{
    for (size_t i = 0; i < agent->count; i++) {
        ssh_key_done(&agent->keys[i].key);
        free(agent->keys[i].hosts);
    }
    free(agent->keys);
    *agent = (struct ssh_agent){ .keys = NULL };
}

static int byte_answer(struct buf *out, uint8_t type)
{
    return ssh_put_u32(out, 1) && ssh_put_u8(out, type) ? 0 : -ENOBUFS;
}

static int body_answer(struct buf *out, const struct buf *body)
{
    return ssh_put_string(out, body->data, body->len) ? 0 : -ENOBUFS;
}

static bool key_is_for(const struct ssh_agent_key *key, const struct ssh_public *host)
{
    for (size_t i = 0; i < key->host_count; i++)
        if (ssh_public_equals(&key->hosts[i], (struct ssh_bytes){ host->blob, host->len }))
            return true;
    return false;
}

/* Lists the keys of the server; all of them before the client has said which one it is: public keys
 * are no secret, and `ssh-add -l` tells what there is. */
static int identities_answer(const struct ssh_agent *agent, const struct ssh_agent_session *session,
                             struct buf *out)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(SSH_AGENT_REPLY_MAX);
    uint32_t count = 0;
    bool is_put;

    for (size_t i = 0; i < agent->count; i++)
        count += !session->is_bound || key_is_for(&agent->keys[i], &session->host);
    is_put = ssh_put_u8(&body, AGENT_IDENTITIES_ANSWER) && ssh_put_u32(&body, count);
    for (size_t i = 0; is_put && i < agent->count; i++) {
        const struct ssh_agent_key *key = &agent->keys[i];

        if (!session->is_bound || key_is_for(key, &session->host))
            is_put = ssh_put_string(&body, key->key.public.blob, key->key.public.len) &&
                     ssh_put_text(&body, key->comment);
    }
    return is_put ? body_answer(out, &body) : -ENOBUFS;
}

/* Returns why the session is not bound to the server; NULL: it is now. */
static const char *session_bind(struct ssh_agent_session *session, struct ssh_reader *reader)
{
    struct ssh_bytes host = ssh_get_string(reader), id = ssh_get_string(reader);
    struct ssh_bytes signature = ssh_get_string(reader);
    bool is_forwarding = ssh_get_u8(reader) != 0;

    if (!ssh_reader_is_done(reader) || id.len == 0 || id.len > sizeof(session->id))
        return "the bind of the session is malformed";
    if (is_forwarding)
        return "the agent is not forwarded to servers";
    if (session->is_bound)
        return "the connection is bound to a session already";
    if (ssh_public_init(&session->host, host) < 0)
        return "the host key is of an unknown type";
    if (!ssh_public_verify(&session->host, id, signature))
        return "the host key did not sign the session";
    memcpy(session->id, id.data, id.len);
    session->id_len = id.len;
    session->is_bound = true;
    return NULL;
}

static int extension_answer(struct ssh_agent_session *session, struct ssh_reader *reader,
                            struct buf *out, struct ssh_agent_event *ret)
{
    if (!ssh_bytes_are(ssh_get_string(reader), "session-bind@openssh.com"))
        return byte_answer(out, AGENT_EXTENSION_FAILURE);
    ret->refusal = session_bind(session, reader);
    if (ret->refusal)
        session->is_spoiled = true;
    return byte_answer(out, ret->refusal ? AGENT_FAILURE : AGENT_SUCCESS);
}

/* Returns why the data is no login in this session with this key; NULL: it is one. */
static const char *login_problem(const struct ssh_agent_session *session,
                                 const struct ssh_agent_key *key, struct ssh_bytes data)
{
    struct ssh_reader reader = ssh_reader_of(data.data, data.len);
    struct ssh_bytes id = ssh_get_string(&reader);
    bool is_request = ssh_get_u8(&reader) == USERAUTH_REQUEST;
    struct ssh_bytes service, method, blob;
    bool has_signature;

    (void)ssh_get_string(&reader); /* the user */
    service = ssh_get_string(&reader);
    method = ssh_get_string(&reader);
    has_signature = ssh_get_u8(&reader) == 1;
    (void)ssh_get_string(&reader); /* the algorithm */
    blob = ssh_get_string(&reader);
    if (ssh_bytes_are(method, "publickey-hostbound-v00@openssh.com")) {
        if (!ssh_public_equals(&session->host, ssh_get_string(&reader)))
            return "the login is for another server";
    } else if (!ssh_bytes_are(method, "publickey")) {
        return "only logins are signed";
    }
    if (!ssh_reader_is_done(&reader) || !is_request || !has_signature ||
        !ssh_bytes_are(service, "ssh-connection"))
        return "only logins are signed";
    if (!ssh_bytes_equal(id, (struct ssh_bytes){ session->id, session->id_len }))
        return "the login is for another session";
    return ssh_public_equals(&key->key.public, blob) ? NULL : "the login is with another key";
}

static const char *sign_problem(const struct ssh_agent_session *session,
                                const struct ssh_agent_key *key, struct ssh_bytes data)
{
    if (!key)
        return "there is no such key";
    if (session->is_spoiled)
        return "the session could not be bound to its server";
    if (!session->is_bound)
        return "the client has not bound the session to its server (OpenSSH 8.9 and later do)";
    if (!key_is_for(key, &session->host))
        return "the key is bound to other servers";
    return login_problem(session, key, data);
}

static int sign_answer(const struct ssh_agent *agent, const struct ssh_agent_session *session,
                       struct ssh_reader *reader, struct buf *out, struct ssh_agent_event *ret)
{
    struct ssh_bytes blob = ssh_get_string(reader), data = ssh_get_string(reader);
    uint32_t flags = ssh_get_u32(reader);
    cleanup_with(buf_done) struct buf body = BUF_INIT(SSH_AGENT_REPLY_MAX);
    int r;

    for (size_t i = 0; i < agent->count && !ret->key; i++)
        if (ssh_public_equals(&agent->keys[i].key.public, blob))
            ret->key = &agent->keys[i];
    ret->refusal = ssh_reader_is_done(reader) ? sign_problem(session, ret->key, data)
                                              : "the request is malformed";
    if (ret->refusal)
        return byte_answer(out, AGENT_FAILURE);
    if (!ssh_put_u8(&body, AGENT_SIGN_RESPONSE))
        return -ENOBUFS;
    r = ssh_key_sign(&ret->key->key, data, flags, &body);
    if (r == -EIO) {
        ret->refusal = "the key cannot sign";
        return byte_answer(out, AGENT_FAILURE);
    }
    return r < 0 ? r : body_answer(out, &body);
}

int ssh_agent_answer(const struct ssh_agent *agent, struct ssh_agent_session *session,
                     struct ssh_bytes message, struct buf *out, struct ssh_agent_event *ret)
{
    struct ssh_reader reader = ssh_reader_of(message.data, message.len);

    *ret = (struct ssh_agent_event){ .key = NULL };
    switch (ssh_get_u8(&reader)) {
    case AGENT_REQUEST_IDENTITIES:
        return identities_answer(agent, session, out);
    case AGENT_SIGN_REQUEST:
        return sign_answer(agent, session, &reader, out, ret);
    case AGENT_EXTENSION:
        return extension_answer(session, &reader, out, ret);
    default: /* keys cannot be added, removed or locked from inside */
        return byte_answer(out, AGENT_FAILURE);
    }
}
