// SPDX-License-Identifier: Apache-2.0
#include "egress/http/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "egress/secret/json_place.h"
#include "egress/secret/needle.h"

enum { TARGET_MAX = 64 * 1024, TEXT_MAX = 64 * 1024 };

static const char basic[] = "Basic ";

static void wiped_done(struct buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->len);
    buf_done(buf);
}

void rewrite_init(struct rewrite *rewrite)
{
    *rewrite = (struct rewrite){ .target = BUF_INIT(TARGET_MAX) };
    http_draft_init(&rewrite->draft);
}

void rewrite_done(struct rewrite *rewrite)
{
    wiped_done(&rewrite->target);
    http_draft_done(&rewrite->draft);
}

static int rewrite_refuse(struct rewrite *ret, const char *problem)
{
    ret->problem = problem;
    ret->where = NULL;
    return -EACCES;
}

static int leak_refuse(struct rewrite *ret, const char *where, size_t secret)
{
    ret->problem = "the placeholder of a secret stands where Holt does not replace it";
    ret->where = where;
    ret->secret = secret;
    return -EACCES;
}

static int text_check(const struct rewrite_way *way, struct http_text text, const char *where,
                      struct rewrite *ret)
{
    long tag = needles_find(way->secrets->placeholders, text.at, text.len);

    return tag < 0 ? 0 : leak_refuse(ret, where, (size_t)tag);
}

/* A secret must not take a way that somebody else has chosen. */
static int path_check(const struct rewrite_way *way, size_t i, struct rewrite *ret)
{
    if (!way->has_own_path || way->secrets->items[i].may_use_own_path)
        return 0;
    ret->problem = "the sandbox has a proxy or CA bundle that the owner of the secret did not set";
    ret->where = "path";
    ret->secret = i;
    return -EACCES;
}

/* Whether the text is the template with the placeholder in it. */
static bool template_matches(const struct broker_secret *secret, struct http_text text)
{
    size_t prefix = strlen(secret->prefix), suffix = strlen(secret->suffix);
    size_t placeholder = strlen(secret->placeholder);

    return text.len == prefix + placeholder + suffix &&
           memcmp(text.at, secret->prefix, prefix) == 0 &&
           memcmp(text.at + prefix, secret->placeholder, placeholder) == 0 &&
           memcmp(text.at + prefix + placeholder, secret->suffix, suffix) == 0;
}

static int template_fill(const struct broker_secret *secret, struct buf *out)
{
    int r =
        buf_reserve(out, strlen(secret->prefix) + strlen(secret->value) + strlen(secret->suffix));

    if (r == 0)
        r = buf_add_str(out, secret->prefix);
    if (r == 0)
        r = buf_add_str(out, secret->value);
    return r == 0 ? buf_add_str(out, secret->suffix) : r;
}

/* --- headers --- */

/* "Basic base64(user:PLACEHOLDER)", as git sends it. Returns whether it was replaced. */
static bool basic_swap(const struct broker_secret *secret, struct http_text value, struct buf *out)
{
    cleanup_with(wiped_done) struct buf plain = BUF_INIT(TEXT_MAX), filled = BUF_INIT(TEXT_MAX);
    const size_t scheme = sizeof(basic) - 1;
    bool has_user = secret->prefix[0] != '\0';
    const char *colon;
    struct http_text rest;

    if (value.len <= scheme || strncasecmp(value.at, basic, scheme) != 0 ||
        base64_decode(&plain, value.at + scheme, value.len - scheme) < 0 || plain.len == 0)
        return false;
    colon = memchr(plain.data, ':', plain.len);
    if (!colon)
        return false;
    rest = (struct http_text){ colon + 1, plain.len - (size_t)(colon + 1 - plain.data) };
    if (has_user)
        rest = (struct http_text){ plain.data, plain.len };
    if (!template_matches(secret, rest) || buf_reserve(&filled, TEXT_MAX / 2) < 0 ||
        (!has_user && buf_add(&filled, plain.data, plain.len - rest.len) < 0) ||
        template_fill(secret, &filled) < 0)
        return false;
    return buf_reserve(out, scheme + filled.len * 2 + 4) == 0 && buf_add_str(out, basic) == 0 &&
           base64_encode(out, filled.data, filled.len) == 0;
}

/* Returns 1 if the value of the field was replaced into `out`, 0 if not, or -EACCES. */
static int field_swap(const struct rewrite_way *way, const struct http_field *field,
                      struct buf *out, struct rewrite *ret)
{
    for (size_t i = 0; i < way->secrets->count; i++) {
        const struct broker_secret *secret = &way->secrets->items[i];
        bool is_swapped = false;

        if (secret->place > BROKER_BASIC || !http_text_is(field->name, secret->field) ||
            !broker_secret_is_for(secret, way->name, way->port))
            continue;
        if (secret->place == BROKER_BASIC)
            is_swapped = basic_swap(secret, field->value, out);
        else if (template_matches(secret, field->value))
            is_swapped = template_fill(secret, out) == 0;
        if (is_swapped)
            return path_check(way, i, ret) < 0 ? -EACCES : 1;
    }
    return 0;
}

/* Fields that are written anew for the server's connection, or that must not reach it. */
static bool field_is_left_out(const struct rewrite *ret, const struct http_fields *fields,
                              struct http_text name)
{
    if (http_text_is(name, "Host") || http_text_is(name, "Content-Length") ||
        http_field_is_hop(fields, name))
        return true;
    /* What is compressed cannot be searched: replies come as they are. */
    return ret->searches && (http_text_is(name, "Accept-Encoding") ||
                             http_text_is(name, "Sec-WebSocket-Extensions"));
}

static bool field_is_twice(const struct http_fields *fields, size_t i)
{
    struct http_text name = fields->items[i].name;

    for (size_t j = 0; j < fields->count; j++)
        if (j != i && fields->items[j].name.len == name.len &&
            strncasecmp(fields->items[j].name.at, name.at, name.len) == 0)
            return true;
    return false;
}

static int field_rewrite(const struct rewrite_way *way, const struct http_fields *fields, size_t i,
                         struct rewrite *ret)
{
    cleanup_with(wiped_done) struct buf value = BUF_INIT(TEXT_MAX);
    const struct http_field *field = &fields->items[i];
    int r = field_swap(way, field, &value, ret);

    if (r < 0)
        return r;
    if (r > 0 && field_is_twice(fields, i))
        return rewrite_refuse(ret, "the header of a secret is there twice");
    if (r > 0)
        return http_draft_add(&ret->draft, field->name,
                              (struct http_text){ value.data, value.len }) < 0
                   ? rewrite_refuse(ret, "the head of the request is too long")
                   : 0;
    if (text_check(way, field->value, "header", ret) < 0 ||
        text_check(way, field->name, "header", ret) < 0)
        return -EACCES;
    if (field_is_left_out(ret, fields, field->name))
        return 0;
    return http_draft_add(&ret->draft, field->name, field->value) < 0
               ? rewrite_refuse(ret, "the head of the request is too long")
               : 0;
}

/* --- the query --- */

static int percent_add(struct buf *out, const char *text)
{
    int r = 0;

    for (; r == 0 && *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr("-._~", c);

        r = is_plain ? buf_add(out, text, 1) : buf_printf(out, "%%%02X", c);
    }
    return r;
}

/* Appends one "name=value" of the query. Returns 1 if it was replaced, 0 if not, or -EACCES. */
static int parameter_swap(const struct rewrite_way *way, struct http_text parameter,
                          struct rewrite *ret)
{
    const char *equals = memchr(parameter.at, '=', parameter.len);
    size_t name_len = equals ? (size_t)(equals - parameter.at) : parameter.len;

    for (size_t i = 0; equals && i < way->secrets->count; i++) {
        const struct broker_secret *secret = &way->secrets->items[i];
        struct http_text value = { equals + 1, parameter.len - name_len - 1 };

        if (secret->place != BROKER_QUERY || strlen(secret->field) != name_len ||
            memcmp(secret->field, parameter.at, name_len) != 0 ||
            !broker_secret_is_for(secret, way->name, way->port) || !template_matches(secret, value))
            continue;
        if (path_check(way, i, ret) < 0)
            return -EACCES;
        if (buf_add(&ret->target, parameter.at, name_len + 1) < 0 ||
            percent_add(&ret->target, secret->prefix) < 0 ||
            percent_add(&ret->target, secret->value) < 0 ||
            percent_add(&ret->target, secret->suffix) < 0)
            return rewrite_refuse(ret, "the target of the request is too long");
        return 1;
    }
    return 0;
}

static int target_rewrite(const struct rewrite_way *way, const struct http_head *head,
                          struct rewrite *ret)
{
    const char *query = memchr(head->path, '?', head->path_len), *end = head->path + head->path_len;
    size_t path_len = query ? (size_t)(query - head->path) : head->path_len;
    cleanup_with(wiped_done) struct buf rest = BUF_INIT(TARGET_MAX);
    int r = buf_reserve(&ret->target, (size_t)3 * BROKER_VALUE_MAX + head->path_len);

    if (r == 0)
        r = buf_add(&ret->target, head->path, path_len);
    if (r == 0)
        r = buf_add(&rest, head->path, path_len);
    while (r == 0 && query) {
        const char *next = memchr(query + 1, '&', (size_t)(end - query - 1));
        struct http_text parameter = { query + 1, (size_t)((next ? next : end) - query - 1) };

        r = buf_add(&ret->target, query, 1);
        if (r == 0)
            r = parameter_swap(way, parameter, ret);
        if (r == -EACCES)
            return r;
        if (r == 0)
            r = buf_add(&ret->target, parameter.at, parameter.len) < 0 ||
                        buf_add(&rest, query, 1 + parameter.len) < 0
                    ? -ENOBUFS
                    : 0;
        r = r > 0 ? 0 : r;
        query = next;
    }
    if (r < 0)
        return rewrite_refuse(ret, "the target of the request is too long");
    return text_check(way, (struct http_text){ rest.data, rest.len }, "query", ret);
}

/* --- the whole --- */

static bool is_json(const struct http_fields *fields)
{
    const struct http_field *type = http_field_find(fields, "Content-Type");

    return type && memmem(type->value.at, type->value.len, "json", 4);
}

/* The client has no say: what its field Connection names is set all the same. */
static int header_set(const struct rewrite_way *way, size_t i, struct rewrite *ret)
{
    static const struct http_fields none = { .count = 0 };
    const struct broker_secret *secret = &way->secrets->items[i];
    cleanup_with(wiped_done) struct buf value = BUF_INIT(TEXT_MAX);
    struct http_text name = { secret->field, strlen(secret->field) };

    if (field_is_left_out(ret, &none, name))
        return 0;
    if (!secret->value)
        return rewrite_refuse(ret, "the value of a header that a rule sets is gone");
    if (path_check(way, i, ret) < 0)
        return -EACCES;
    http_draft_remove(&ret->draft, secret->field);
    if (template_fill(secret, &value) < 0 ||
        http_draft_add(&ret->draft, name, (struct http_text){ value.data, value.len }) < 0)
        return rewrite_refuse(ret, "the head of the request is too long");
    return 0;
}

static int headers_set(const struct rewrite_way *way, struct rewrite *ret)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < way->secrets->count; i++)
        if (broker_secret_is_set(way->secrets, i, way->name, way->port))
            r = header_set(way, i, ret);
    return r;
}

/* Room for all: a text that grows would leave copies of values behind. */
static size_t draft_size(const struct rewrite_way *way, const struct http_head *head)
{
    size_t size = head->size + (size_t)4 * BROKER_VALUE_MAX;

    for (size_t i = 0; i < way->secrets->count; i++) {
        const struct broker_secret *secret = &way->secrets->items[i];

        if (secret->place == BROKER_SET && secret->value)
            size += (size_t)3 * BROKER_FIELD_MAX + strlen(secret->value);
    }
    return size;
}

int rewrite_head(const struct rewrite_way *way, const struct http_head *head,
                 const struct http_fields *fields, struct rewrite *ret)
{
    int r;

    ret->searches = broker_secrets_name(way->secrets, way->name, way->port);
    for (size_t i = 0; i < way->secrets->count; i++)
        ret->wants_json |= way->secrets->items[i].place == BROKER_JSON && is_json(fields) &&
                           broker_secret_is_for(&way->secrets->items[i], way->name, way->port);
    if (buf_reserve(&ret->draft.text, draft_size(way, head)) < 0)
        return rewrite_refuse(ret, "the head of the request is too long");
    r = target_rewrite(way, head, ret);
    for (size_t i = 0; r == 0 && i < fields->count; i++)
        r = field_rewrite(way, fields, i, ret);
    if (r == 0)
        r = headers_set(way, ret);
    if (r == 0 && ret->searches)
        r = http_draft_add_text(&ret->draft, "Accept-Encoding", "identity");
    return r;
}

/* Puts the value of one secret in its place, and leaves `rest` with the body without it. */
static int place_fill(const struct rewrite_way *way, size_t i, struct buf *body,
                      struct rewrite *ret)
{
    const struct broker_secret *secret = &way->secrets->items[i];
    cleanup_with(wiped_done) struct buf filled = BUF_INIT(TEXT_MAX),
                                        quoted = BUF_INIT((size_t)6 * TEXT_MAX);
    cleanup_with(wiped_done) struct buf made = BUF_INIT(body->max);
    size_t at, len;
    int r = json_place_find(body->data, body->len, secret->field, &at, &len);

    if (r < 0)
        return rewrite_refuse(ret, "the body is not JSON that has one meaning");
    if (r == 0 || !template_matches(secret, (struct http_text){ body->data + at, len }))
        return 0;
    if (path_check(way, i, ret) < 0)
        return -EACCES;
    if (template_fill(secret, &filled) < 0 || buf_reserve(&quoted, 6 * filled.len + 2) < 0 ||
        json_add_text(&quoted, filled.data, filled.len) < 0 ||
        buf_reserve(&made, body->len + quoted.len) < 0 || buf_add(&made, body->data, at) < 0 ||
        buf_add(&made, quoted.data + 1, quoted.len - 2) < 0 ||
        buf_add(&made, body->data + at + len, body->len - at - len) < 0)
        return rewrite_refuse(ret, "the body is too long");
    wiped_done(body);
    *body = made;
    made = (struct buf)BUF_INIT(0);
    return 0;
}

int rewrite_json(const struct rewrite_way *way, struct buf *body, struct rewrite *ret)
{
    for (size_t i = 0; i < way->secrets->count; i++) {
        if (way->secrets->items[i].place == BROKER_JSON &&
            broker_secret_is_for(&way->secrets->items[i], way->name, way->port) &&
            place_fill(way, i, body, ret) < 0)
            return -EACCES;
    }
    return text_check(way, (struct http_text){ body->data, body->len }, "body", ret);
}
