// SPDX-License-Identifier: Apache-2.0
#include "egress/http_head.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum { CHUNK_DIGITS_MAX = 15 };

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_LAST_CR, /* the empty line behind the last chunk: trailers are refused */
    CHUNK_LAST_LF,
};

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

int http_head_is_http(const void *data, size_t len)
{
    static const char version[] = " HTTP/";
    const char *text = data, *end;
    size_t i = 0;

    /* Servers skip empty lines in front of a request; the parser refuses them. */
    if (len > 0 && (text[0] == '\r' || text[0] == '\n'))
        return 1;
    while (i < len && i <= HTTP_METHOD_MAX &&
           ((text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z') ||
            text[i] == '-'))
        i++;
    if (i == len && i <= HTTP_METHOD_MAX)
        return 0;
    if (i == 0 || i > HTTP_METHOD_MAX || (text[i] != ' ' && text[i] != '\t'))
        return -1;
    end = memchr(text, '\n', len);
    if (!end)
        return len < HTTP_HEAD_MAX ? 0 : 1;
    return memmem(text, (size_t)(end - text), version, sizeof(version) - 1) ? 1 : -1;
}

/* A line of the head, without CR LF. */
struct line {
    const char *at;
    size_t len;
};

/* Takes the next line; false if it is not terminated by CR LF or has control characters. */
static bool line_next(const char **next, const char *end, struct line *ret)
{
    const char *lf = memchr(*next, '\n', (size_t)(end - *next));

    if (!lf || lf == *next || lf[-1] != '\r')
        return false;
    *ret = (struct line){ .at = *next, .len = (size_t)(lf - 1 - *next) };
    *next = lf + 1;
    for (size_t i = 0; i < ret->len; i++)
        if (((unsigned char)ret->at[i] < ' ' && ret->at[i] != '\t') || ret->at[i] == 0x7f)
            return false;
    return true;
}

/* Reads "name", "name:port", "1.2.3.4" or "[::1]:port". */
static int authority_parse(const char *text, size_t len, char host[HTTP_HOST_MAX + 1],
                           uint16_t *ret_port)
{
    const char *end = text + len, *colon;
    unsigned port = 0;

    if (len > 0 && text[0] == '[') {
        const char *bracket = memchr(text, ']', len);

        if (!bracket || (bracket + 1 < end && bracket[1] != ':'))
            return -EBADMSG;
        colon = bracket + 1;
        text++;
        len = (size_t)(bracket - text);
    } else {
        colon = memchr(text, ':', len);
        if (colon)
            len = (size_t)(colon - text);
        else
            colon = end;
    }
    for (const char *c = colon + 1; c < end; c++) {
        if (*c < '0' || *c > '9')
            return -EBADMSG;
        port = port * 10 + (unsigned)(*c - '0');
        if (port > UINT16_MAX)
            return -EBADMSG;
    }
    if (len > HTTP_HOST_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f || strchr("/\\@?#,;\"<>%", text[i]))
            return -EBADMSG;
    memcpy(host, text, len);
    host[len] = '\0';
    *ret_port = (uint16_t)port;
    return 0;
}

/* Reads the target: a path, "*" or http://host/path, whose host must be that of the Host field. */
static int target_parse(struct line target, struct http_head *ret, struct line *ret_authority)
{
    static const char scheme[] = "http://";
    const size_t scheme_len = sizeof(scheme) - 1;

    ret_authority->len = 0;
    if (target.len > scheme_len && strncasecmp(target.at, scheme, scheme_len) == 0) {
        const char *slash = memchr(target.at + scheme_len, '/', target.len - scheme_len);

        if (!slash)
            return -EBADMSG;
        *ret_authority =
            (struct line){ target.at + scheme_len, (size_t)(slash - target.at) - scheme_len };
        target = (struct line){ slash, target.len - (size_t)(slash - target.at) };
    }
    if (target.len == 0 || (target.at[0] != '/' && !(target.len == 1 && target.at[0] == '*')))
        return -EBADMSG;
    for (size_t i = 0; i < target.len; i++)
        if (target.at[i] <= ' ' || (unsigned char)target.at[i] >= 0x7f)
            return -EBADMSG;
    ret->path = target.at;
    ret->path_len = target.len;
    return 0;
}

/* "METHOD target HTTP/1.x" with single spaces. */
static int request_line_parse(struct line line, struct http_head *ret, struct line *ret_authority)
{
    const char *end = line.at + line.len, *space = memchr(line.at, ' ', line.len), *second;
    size_t method = space ? (size_t)(space - line.at) : 0;

    if (method == 0 || method > HTTP_METHOD_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < method; i++)
        if (!is_token(line.at[i]))
            return -EBADMSG;
    memcpy(ret->method, line.at, method);
    if (strcmp(ret->method, "CONNECT") == 0)
        return -EBADMSG;
    second = memchr(space + 1, ' ', (size_t)(end - space - 1));
    if (!second || end - second != 9 ||
        (memcmp(second + 1, "HTTP/1.1", 8) != 0 && memcmp(second + 1, "HTTP/1.0", 8) != 0))
        return -EBADMSG;
    ret->is_old = end[-1] == '0';
    return target_parse((struct line){ space + 1, (size_t)(second - space - 1) }, ret,
                        ret_authority);
}

static bool line_is(struct line line, const char *text)
{
    return line.len == strlen(text) && strncasecmp(line.at, text, line.len) == 0;
}

static int length_parse(struct line value, struct http_head *ret)
{
    uint64_t length = 0;

    if (ret->body != HTTP_NO_BODY || value.len == 0 || value.len > 18)
        return -EBADMSG;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -EBADMSG;
        length = length * 10 + (uint64_t)(value.at[i] - '0');
    }
    ret->body = HTTP_LENGTH;
    ret->length = length;
    return 0;
}

/* Frameworks take the method of a request from such a field instead. Two that differ could be read
 * in two ways. */
static int other_method_parse(struct line value, struct http_head *ret)
{
    char method[HTTP_METHOD_MAX + 1] = "";

    if (value.len == 0 || value.len > HTTP_METHOD_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_token(value.at[i]))
            return -EBADMSG;
        method[i] = (char)toupper((unsigned char)value.at[i]);
    }
    if (ret->other_method[0] && strcmp(ret->other_method, method) != 0)
        return -EBADMSG;
    memcpy(ret->other_method, method, sizeof(method));
    return 0;
}

/* The same of the path, which may be that of a URL. */
static int other_path_parse(struct line value, struct http_head *ret)
{
    const char *scheme = memmem(value.at, value.len, "://", 3), *end = value.at + value.len;
    const char *path = memchr(scheme ? scheme + 3 : value.at, '/',
                              (size_t)(end - (scheme ? scheme + 3 : value.at)));

    if (!path || (!scheme && path != value.at))
        return -EBADMSG;
    if (ret->other_path && (ret->other_path_len != (size_t)(end - path) ||
                            memcmp(ret->other_path, path, ret->other_path_len) != 0))
        return -EBADMSG;
    ret->other_path = path;
    ret->other_path_len = (size_t)(end - path);
    return 0;
}

/* Compares a name as servers do that put fields into variables: an underscore is a hyphen there. */
static bool name_may_be(struct line name, const char *word)
{
    if (name.len != strlen(word))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (tolower((unsigned char)(name.at[i] == '_' ? '-' : name.at[i])) !=
            tolower((unsigned char)word[i]))
            return false;
    return true;
}

static int override_parse(struct line name, struct line value, struct http_head *ret)
{
    static const char *const methods[] = { "X-HTTP-Method-Override", "X-HTTP-Method",
                                           "X-Method-Override" };
    static const char *const paths[] = { "X-Original-URL", "X-Rewrite-URL" };

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (name_may_be(name, methods[i]))
            return other_method_parse(value, ret);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (name_may_be(name, paths[i]))
            return other_path_parse(value, ret);
    return 0;
}

static int field_parse(struct line line, struct http_head *ret, bool *has_host)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct line name, value;

    if (!colon || colon == line.at)
        return -EBADMSG;
    name = (struct line){ line.at, (size_t)(colon - line.at) };
    for (size_t i = 0; i < name.len; i++)
        if (!is_token(name.at[i]))
            return -EBADMSG; /* also folded lines and spaces in front of the colon */
    value = (struct line){ colon + 1, line.len - name.len - 1 };
    while (value.len > 0 && (value.at[0] == ' ' || value.at[0] == '\t')) {
        value.at++;
        value.len--;
    }
    while (value.len > 0 && (value.at[value.len - 1] == ' ' || value.at[value.len - 1] == '\t'))
        value.len--;
    if (line_is(name, "Host")) {
        if (*has_host || value.len == 0)
            return -EBADMSG;
        *has_host = true;
        return authority_parse(value.at, value.len, ret->host, &ret->port);
    }
    if (line_is(name, "Content-Length"))
        return length_parse(value, ret);
    if (line_is(name, "Transfer-Encoding")) {
        /* HTTP/1.0 does not have it: one server would read a body, another a second request. */
        if (ret->body != HTTP_NO_BODY || ret->is_old || !line_is(value, "chunked"))
            return -EBADMSG;
        ret->body = HTTP_CHUNKED;
    }
    /* Other protocols, such as h2c, could carry requests that are not looked at: a server may
     * accept them, but the bytes of the client are read as HTTP/1 all the same. */
    if (line_is(name, "Upgrade")) {
        ret->is_upgrade = !ret->has_upgrade && line_is(value, "websocket");
        ret->has_upgrade = true;
    }
    return override_parse(name, value, ret);
}

/* The end of the head, or NULL. */
static const char *head_end(const char *data, size_t len)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);

    return end ? end + 4 : NULL;
}

/* Whether a line ends without CR, so that no more bytes can make this a head. */
static bool has_bare_lf(const char *data, size_t len)
{
    const char *end = data + len, *lf = data;

    while ((lf = memchr(lf, '\n', (size_t)(end - lf)))) {
        if (lf == data || lf[-1] != '\r')
            return true;
        lf++;
    }
    return false;
}

int http_head_parse(const char *data, size_t len, struct http_head *ret)
{
    const char *end = head_end(data, len), *next = data;
    struct line line, authority;
    bool has_host = false;

    *ret = (struct http_head){ .size = 0 };
    if (len > 0 && !is_token(data[0]))
        return -EBADMSG;
    if (!end)
        return len >= HTTP_HEAD_MAX || memchr(data, '\0', len) || has_bare_lf(data, len) ? -EBADMSG
                                                                                         : 0;
    ret->size = (size_t)(end - data);
    if (ret->size > HTTP_HEAD_MAX || !line_next(&next, end, &line) ||
        request_line_parse(line, ret, &authority) < 0)
        return -EBADMSG;
    for (;;) {
        if (!line_next(&next, end, &line))
            return -EBADMSG;
        if (line.len == 0)
            break;
        if (field_parse(line, ret, &has_host) < 0)
            return -EBADMSG;
    }
    if (authority.len > 0) {
        char host[HTTP_HOST_MAX + 1];
        uint16_t port;

        if (!has_host || authority_parse(authority.at, authority.len, host, &port) < 0 ||
            strcasecmp(host, ret->host) != 0 || port != ret->port)
            return -EBADMSG;
    }
    return next == end ? 1 : -EBADMSG;
}

void http_stream_begin(struct http_stream *stream, const struct http_head *head)
{
    *stream = (struct http_stream){ .body = head->body, .left = head->length };
    if (head->body == HTTP_LENGTH && head->length == 0)
        stream->body = HTTP_NO_BODY;
    if (head->body == HTTP_CHUNKED)
        stream->left = 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Extensions of chunks are refused: nobody uses them, and servers read them in different ways. */
static int chunk_byte(struct http_stream *stream, char c)
{
    switch ((enum chunk_state)stream->state) {
    case CHUNK_SIZE:
        if (c == '\r' && stream->digits > 0) {
            stream->state = CHUNK_SIZE_LF;
            return 0;
        }
        if (hex_digit(c) < 0 || ++stream->digits > CHUNK_DIGITS_MAX)
            return -EBADMSG;
        stream->left = stream->left << 4 | (uint64_t)hex_digit(c);
        return 0;
    case CHUNK_SIZE_LF:
        stream->state = stream->left > 0 ? CHUNK_DATA : CHUNK_LAST_CR;
        stream->digits = 0;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_DATA_CR:
        stream->state = CHUNK_DATA_LF;
        return c == '\r' ? 0 : -EBADMSG;
    case CHUNK_DATA_LF:
        stream->state = CHUNK_SIZE;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_LAST_CR:
        stream->state = CHUNK_LAST_LF;
        return c == '\r' ? 0 : -EBADMSG;
    case CHUNK_LAST_LF:
        stream->body = HTTP_NO_BODY;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_DATA:
        break;
    }
    return -EBADMSG;
}

static size_t data_pass(struct http_stream *stream, size_t len)
{
    size_t part = len < stream->left ? len : (size_t)stream->left;

    stream->left -= part;
    return part;
}

long http_stream_pass(struct http_stream *stream, const char *data, size_t len)
{
    size_t passed = 0;

    if (stream->body == HTTP_LENGTH) {
        passed = data_pass(stream, len);
        if (stream->left == 0)
            stream->body = HTTP_NO_BODY;
        return (long)passed;
    }
    while (passed < len && stream->body == HTTP_CHUNKED) {
        if (stream->state == CHUNK_DATA) {
            passed += data_pass(stream, len - passed);
            if (stream->left == 0)
                stream->state = CHUNK_DATA_CR;
        } else if (chunk_byte(stream, data[passed++]) < 0) {
            return -EBADMSG;
        }
    }
    return (long)passed;
}
