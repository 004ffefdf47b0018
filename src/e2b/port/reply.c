// SPDX-License-Identifier: Apache-2.0
#include "e2b/port/reply.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "e2b/port/header.h"

static bool is_interim(const struct http_parser *parser)
{
    return parser->status_code / 100 == 1 && parser->status_code != HTTP_STATUS_SWITCHING_PROTOCOLS;
}

static int on_begin(struct http_parser *parser)
{
    struct port_reply *reply = parser->data;

    buf_clear(&reply->text);
    reply->header_count = 0;
    reply->has_value = false;
    reply->lengths = reply->encodings = 0;
    return 0;
}

static int on_field(struct http_parser *parser, const char *data, size_t len)
{
    struct port_reply *reply = parser->data;
    bool is_new = reply->header_count == 0 || reply->has_value;

    /* Trailers are dropped: they could add headers after the fact. */
    if (reply->has_head)
        return 0;
    if (is_new) {
        if (reply->header_count == PORT_REPLY_HEADERS_MAX ||
            (reply->header_count > 0 && buf_add(&reply->text, "", 1) < 0))
            return 1;
        reply->starts[reply->header_count++][0] = reply->text.len;
        reply->has_value = false;
    }
    return buf_add(&reply->text, data, len) < 0;
}

static int on_value(struct http_parser *parser, const char *data, size_t len)
{
    struct port_reply *reply = parser->data;

    if (reply->has_head)
        return 0;
    if (!reply->has_value) {
        if (buf_add(&reply->text, "", 1) < 0)
            return 1;
        reply->starts[reply->header_count - 1][1] = reply->text.len;
        reply->has_value = true;
    }
    return buf_add(&reply->text, data, len) < 0;
}

/* A tab is allowed, and libmicrohttpd has none of it. */
static bool check_value(char *value)
{
    for (; *value; value++) {
        if (*value == '\t')
            *value = ' ';
        if ((unsigned char)*value < ' ' || *value == 0x7f)
            return false;
    }
    return true;
}

static bool check_header(struct port_reply *reply, size_t index)
{
    size_t value_start = reply->starts[index][1];
    size_t end =
        index + 1 < reply->header_count ? reply->starts[index + 1][0] - 1 : reply->text.len;
    const char *name = port_reply_name(reply, index);
    char *value = reply->text.data + value_start;

    if (strlen(value) != end - value_start ||
        strlen(name) != value_start - 1 - (size_t)(name - reply->text.data) ||
        !port_header_is_name(name) || !check_value(value))
        return false;
    reply->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") != 0)
        return true;
    reply->encodings++;
    return strcasecmp(value, "chunked") == 0;
}

/* Two ways of saying where a body ends may be read in two ways. */
static bool check_head(struct port_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (!check_header(reply, i))
            return false;
    return reply->lengths + reply->encodings <= 1;
}

/* http_parser takes 1 for: there is no body. */
static int on_headers(struct http_parser *parser)
{
    struct port_reply *reply = parser->data;

    if (reply->header_count > 0 && !reply->has_value)
        return -1;
    if (!check_head(reply))
        return -1;
    if (is_interim(parser))
        return ++reply->interims > PORT_REPLY_INTERIM_MAX ? -1 : 0;
    if (parser->status_code < 101 || parser->status_code > 599)
        return -1;
    reply->is_upgraded = parser->status_code == HTTP_STATUS_SWITCHING_PROTOCOLS;
    if (reply->is_upgraded && !(reply->can_upgrade && parser->upgrade))
        return -1;
    reply->has_head = true;
    reply->status = parser->status_code;
    reply->length = reply->lengths == 1 ? parser->content_length : PORT_REPLY_UNTIL_END;
    return reply->is_head ? 1 : 0;
}

/* The decoded is never longer than what it was decoded from, so it does not run ahead. */
static int on_body(struct http_parser *parser, const char *data, size_t len)
{
    struct port_reply *reply = parser->data;

    memmove(reply->body + reply->body_len, data, len);
    reply->body_len += len;
    return 0;
}

static int on_complete(struct http_parser *parser)
{
    struct port_reply *reply = parser->data;

    if (is_interim(parser))
        return 0;
    reply->is_complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

static const struct http_parser_settings settings = {
    .on_message_begin = on_begin,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

void port_reply_init(struct port_reply *reply)
{
    http_parser_init(&reply->parser, HTTP_RESPONSE);
    reply->parser.data = reply;
    reply->text.max = PORT_REPLY_TEXT_MAX;
}

void port_reply_done(struct port_reply *reply)
{
    buf_done(&reply->text);
}

ssize_t port_reply_feed(struct port_reply *reply, char *data, size_t len)
{
    size_t taken;

    reply->body = data;
    reply->body_len = 0;
    taken = http_parser_execute(&reply->parser, &settings, data, len);
    if (reply->is_complete && reply->is_upgraded) {
        reply->body_len = len - taken;
        memmove(data, data + taken, reply->body_len);
    }
    /* What stands behind a whole reply answers nothing that was asked. */
    if (reply->is_complete)
        return (ssize_t)reply->body_len;
    if (HTTP_PARSER_ERRNO(&reply->parser) != HPE_OK || taken != len || len == 0)
        return -EBADMSG;
    return (ssize_t)reply->body_len;
}

const char *port_reply_name(const struct port_reply *reply, size_t index)
{
    return reply->text.data + reply->starts[index][0];
}

const char *port_reply_value(const struct port_reply *reply, size_t index)
{
    return reply->text.data + reply->starts[index][1];
}
