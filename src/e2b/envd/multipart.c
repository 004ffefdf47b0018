// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

enum { FEED_CHUNK = 256 * 1024 };

/* Where a parameter's value begins, behind the first ';' of a header's value; NULL: there is none.
 */
static const char *param_find(const char *text, const char *name)
{
    size_t len = strlen(name);

    while ((text = strchr(text, ';'))) {
        text += 1 + strspn(text + 1, " \t");
        if (strncasecmp(text, name, len) == 0 && text[len] == '=')
            return text + len + 1;
        /* A ';' inside of quotes is no end. */
        text += strcspn(text, "=;");
        if (text[0] == '=' && text[1] == '"') {
            text += 2;
            while (*text && *text != '"')
                text += text[0] == '\\' && text[1] ? 2 : 1;
        }
    }
    return NULL;
}

/* What clients write for what would end the quotes or the line. */
static size_t unescape(const char *text, char *ret)
{
    static const struct {
        const char *from;
        char to;
    } escapes[] = {
        { "%22", '"' }, { "%0D", '\r' }, { "%0A", '\n' }, { "\\\"", '"' }, { "\\\\", '\\' }
    };

    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        size_t len = strlen(escapes[i].from);

        if (strncasecmp(text, escapes[i].from, len) == 0) {
            *ret = escapes[i].to;
            return len;
        }
    }
    *ret = *text;
    return 1;
}

/* A parameter's value, in quotes or not; "" when there is none or it is too long. */
static void param_get(const char *text, const char *name, char *ret, size_t size)
{
    const char *value = param_find(text, name);
    bool is_quoted = value && *value == '"';
    size_t used = 0;

    ret[0] = '\0';
    if (!value)
        return;
    value += is_quoted;
    while (*value && (is_quoted ? *value != '"' : !strchr("; \t\r\n", *value))) {
        if (used + 1 == size) {
            ret[0] = '\0';
            return;
        }
        value += is_quoted ? unescape(value, &ret[used]) : (ret[used] = *value, (size_t)1);
        used++;
    }
    ret[used] = '\0';
}

int multipart_init(struct multipart *form, const char *content_type,
                   const struct multipart_ops *ops, void *context, struct err *err)
{
    char boundary[MULTIPART_BOUNDARY_MAX + 1];

    *form = (struct multipart){ .ops = ops, .context = context };
    form->in.max = FEED_CHUNK + MULTIPART_HEADER_MAX + sizeof(form->delimiter);
    param_get(content_type, "boundary", boundary, sizeof(boundary));
    if (boundary[0] == '\0')
        return err_set(err, ERR_INVALID, "the form names no boundary");
    form->delimiter_len =
        (size_t)snprintf(form->delimiter, sizeof(form->delimiter), "\r\n--%s", boundary);
    /* The first boundary needs no line before it. */
    return buf_add(&form->in, "\r\n", 2) < 0 ? err_set(err, ERR_EXHAUSTED, "out of memory") : 0;
}

void multipart_done(struct multipart *form)
{
    buf_done(&form->in);
}

/* The value of Content-Disposition among the header lines; "" when there is none. */
static const char *disposition_of(const char *headers)
{
    static const char name[] = "Content-Disposition:";
    const char *line = headers;

    while (line && strncasecmp(line, name, sizeof(name) - 1) != 0) {
        line = strstr(line, "\r\n");
        line = line ? line + 2 : NULL;
    }
    return line ? line + sizeof(name) - 1 : "";
}

/* Each step takes something from the buffer: 1, or 0 when it needs more, or a negative errno. */

static int take_preamble(struct multipart *form)
{
    const char *found = memmem(form->in.data, form->in.len, form->delimiter, form->delimiter_len);

    if (found) {
        buf_consume(&form->in, (size_t)(found - form->in.data) + form->delimiter_len);
        form->at = MULTIPART_LINE;
        return 1;
    }
    if (form->in.len >= form->delimiter_len)
        buf_consume(&form->in, form->in.len - form->delimiter_len + 1);
    return 0;
}

/* The rest of a line with a boundary. */
static int take_line(struct multipart *form, struct err *err)
{
    size_t blanks;

    if (form->in.len < 2)
        return 0;
    if (memcmp(form->in.data, "--", 2) == 0) {
        form->at = MULTIPART_OVER;
        return 1;
    }
    blanks = strspn(form->in.data, " \t");
    if (blanks + 2 > form->in.len)
        return blanks > MULTIPART_BOUNDARY_MAX ? err_set(err, ERR_INVALID, "a bad boundary") : 0;
    if (memcmp(form->in.data + blanks, "\r\n", 2) != 0)
        return err_set(err, ERR_INVALID, "a part of the form does not begin on its own line");
    /* The line's end stays: headers may be none at all. */
    buf_consume(&form->in, blanks);
    form->at = MULTIPART_HEADERS;
    return 1;
}

static int take_headers(struct multipart *form, struct err *err)
{
    char *end = memmem(form->in.data, form->in.len, "\r\n\r\n", 4);
    char name[MULTIPART_NAME_MAX + 1], filename[MULTIPART_NAME_MAX + 1];
    size_t len;
    int r;

    if (!end && form->in.len > MULTIPART_HEADER_MAX)
        return err_set(err, ERR_INVALID, "the header of a part is longer than %d bytes",
                       MULTIPART_HEADER_MAX);
    if (!end)
        return 0;
    len = (size_t)(end - form->in.data);
    if (memchr(form->in.data, '\0', len))
        return err_set(err, ERR_INVALID, "the header of a part has a NUL in it");
    *end = '\0';
    param_get(disposition_of(form->in.data + (len >= 2 ? 2 : 0)), "name", name, sizeof(name));
    param_get(disposition_of(form->in.data + (len >= 2 ? 2 : 0)), "filename", filename,
              sizeof(filename));
    *end = '\r';
    buf_consume(&form->in, len + 4);
    r = form->ops->begin(form->context, name, filename, err);
    form->at = MULTIPART_BODY;
    return r < 0 ? r : 1;
}

static int take_body(struct multipart *form, struct err *err)
{
    const char *found = memmem(form->in.data, form->in.len, form->delimiter, form->delimiter_len);
    size_t keep = form->delimiter_len - 1;
    size_t len = found                 ? (size_t)(found - form->in.data)
                 : form->in.len > keep ? form->in.len - keep
                                       : 0;
    int r = len > 0 ? form->ops->data(form->context, form->in.data, len, err) : 0;

    if (r < 0)
        return r;
    buf_consume(&form->in, len);
    if (!found)
        return 0;
    buf_consume(&form->in, form->delimiter_len);
    form->at = MULTIPART_LINE;
    r = form->ops->end(form->context, err);
    return r < 0 ? r : 1;
}

static int take_step(struct multipart *form, struct err *err)
{
    switch (form->at) {
    case MULTIPART_BEFORE:
        return take_preamble(form);
    case MULTIPART_LINE:
        return take_line(form, err);
    case MULTIPART_HEADERS:
        return take_headers(form, err);
    case MULTIPART_BODY:
        return take_body(form, err);
    case MULTIPART_OVER:
        break;
    }
    buf_clear(&form->in); /* data behind the last boundary is ignored */
    return 0;
}

int multipart_feed(struct multipart *form, const void *data, size_t len, struct err *err)
{
    const char *bytes = data;

    while (len > 0) {
        size_t part = len < FEED_CHUNK ? len : FEED_CHUNK;
        int r;

        if (buf_add(&form->in, bytes, part) < 0)
            return err_set(err, ERR_EXHAUSTED, "out of memory");
        do
            r = take_step(form, err);
        while (r > 0);
        if (r < 0)
            return r;
        bytes += part;
        len -= part;
    }
    return 0;
}

int multipart_finish(const struct multipart *form, struct err *err)
{
    if (form->at != MULTIPART_OVER)
        return err_set(err, ERR_INVALID, "the form has no end");
    return 0;
}
