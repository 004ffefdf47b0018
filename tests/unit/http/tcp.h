/* What the server's test wants of its TCP side. */
#pragma once

#include "auth/token.h"
#include "unit/http/client.h"

static void tcp_reply(const char *path, const char *type, const char *token, struct buf *reply)
{
    cleanup_free char *headers =
        token ? xasprintf("Connection: close\r\nAuthorization: Bearer %s\r\n", token)
              : xstrdup("Connection: close\r\n");
    static const char message[] = "\0\0\0\0\2{}";
    bool is_stream = strcmp(type, CONNECT_STREAM_TYPE) == 0;
    struct request request = { "POST",           path, type, headers, is_stream ? message : "{}",
                               is_stream ? 7 : 2 };

    buf_clear(reply);
    exchange_on(tcp_connect(), &request, reply);
    CHECK(reply->len > 0);
}

static void tcp_needs_the_token(void)
{
    static const char *const paths[] = { "/holt.v1.HostService/Health", "/healthz", "/nothing" };
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
    char token[TOKEN_LEN + 1], wrong[TOKEN_LEN + 1];
    struct err err;

    CHECK(token_load(dir, token, &err) == 0);
    memcpy(wrong, token, sizeof(wrong));
    wrong[TOKEN_LEN - 1] = token[TOKEN_LEN - 1] == '0' ? '1' : '0';
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        tcp_reply(paths[i], CONNECT_UNARY_TYPE, NULL, &reply);
        CHECK(strncmp(reply.data, "HTTP/1.1 401", 12) == 0, "(%s)", reply.data);
        CHECK(strstr(reply.data, "{\"code\":\"unauthenticated\",\"message\":\"a valid bearer "
                                 "token is required\",\"remedy\":\"set HOLT_TOKEN to the"));
        tcp_reply(paths[i], CONNECT_UNARY_TYPE, wrong, &reply);
        CHECK(strncmp(reply.data, "HTTP/1.1 401", 12) == 0, "(%s)", reply.data);
    }
    tcp_reply(paths[0], CONNECT_UNARY_TYPE, token, &reply);
    CHECK(strncmp(reply.data, "HTTP/1.1 200", 12) == 0, "(%s)", reply.data);
}

static void an_import_over_tcp_is_denied(void)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);
    char token[TOKEN_LEN + 1];
    struct err err;

    CHECK(token_load(dir, token, &err) == 0);
    tcp_reply("/holt.v1.TemplateService/Import", CONNECT_STREAM_TYPE, token, &reply);
    CHECK(memmem(reply.data, reply.len, "permission_denied", 17));
}
