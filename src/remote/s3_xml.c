// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_xml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
#define BLANKS " \t\r\n"

enum { PATH_MAX_BYTES = 256, TEXT_MAX_BYTES = 16 * 1024, REFERENCE_MAX = 10 };

struct reader {
    const char *at, *end; /* what is left, NUL behind it */
    s3_xml_fn *fn;
    void *context;
    struct buf path, text;
};

/* Returns whether the document goes on with a word, and skips it then. */
static bool word_skip(struct reader *reader, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

static void blanks_skip(struct reader *reader)
{
    reader->at += strspn(reader->at, BLANKS);
}

/* Skips a name. Returns its length, or -EBADMSG. */
static int name_skip(struct reader *reader)
{
    size_t len = strspn(reader->at, NAME_BYTES);

    if (len == 0 || len > PATH_MAX_BYTES)
        return -EBADMSG;
    reader->at += len;
    return (int)len;
}

/* --- text ------------------------------------------------------------------------------------- */

static int code_point_add(struct buf *to, unsigned long code)
{
    unsigned char bytes[4];
    size_t len;

    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return -EBADMSG;
    if (code == 0) /* some servers send it for names that have it */
        code = 0xfffd;
    if (code < 0x80) {
        bytes[0] = (unsigned char)code;
        len = 1;
    } else if (code < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | code >> 6);
        len = 2;
    } else if (code < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | code >> 12);
        len = 3;
    } else {
        bytes[0] = (unsigned char)(0xf0 | code >> 18);
        len = 4;
    }
    for (size_t i = 1; i < len; i++)
        bytes[i] = (unsigned char)(0x80 | (code >> 6 * (len - 1 - i) & 0x3f));
    return buf_add(to, bytes, len);
}

static int number_add(struct buf *to, const char *digits)
{
    int base = *digits == 'x' ? 16 : 10;
    const char *known = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";

    digits += base == 16;
    if (*digits == '\0' || digits[strspn(digits, known)] != '\0')
        return -EBADMSG;
    return code_point_add(to, strtoul(digits, NULL, base));
}

/* Reads what is between '&' and ';'. */
static int reference_read(struct reader *reader)
{
    static const struct {
        const char *name, *text;
    } known[] = { { "lt", "<" }, { "gt", ">" }, { "amp", "&" }, { "quot", "\"" }, { "apos", "'" } };
    size_t len = strcspn(reader->at, ";");
    char name[REFERENCE_MAX + 1];

    if (len > REFERENCE_MAX || reader->at[len] != ';')
        return -EBADMSG;
    memcpy(name, reader->at, len);
    name[len] = '\0';
    reader->at += len + 1;
    if (*name == '#')
        return number_add(&reader->text, name + 1);
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strcmp(name, known[i].name) == 0)
            return buf_add_str(&reader->text, known[i].text);
    }
    return -EBADMSG;
}

/* Reads text up to the next tag or the end. */
static int text_read(struct reader *reader)
{
    int r = 0;

    while (r == 0 && reader->at < reader->end && *reader->at != '<') {
        const char *from = reader->at;

        if (word_skip(reader, "&")) {
            r = reference_read(reader);
            continue;
        }
        while (reader->at < reader->end && *reader->at != '<' && *reader->at != '&') {
            if (*reader->at == '\0')
                return -EBADMSG;
            reader->at++;
        }
        r = buf_add(&reader->text, from, (size_t)(reader->at - from));
    }
    return r;
}

/* --- elements --------------------------------------------------------------------------------- */

/* Ends the element that is open, whose name the path ends with. */
static int element_end(struct reader *reader)
{
    char *slash = strrchr(reader->path.data, '/');
    int r = reader->fn(reader->context, reader->path.data, reader->text.data);

    reader->path.len = slash ? (size_t)(slash - reader->path.data) : 0;
    reader->path.data[reader->path.len] = '\0';
    buf_clear(&reader->text);
    return r;
}

static int attribute_skip(struct reader *reader)
{
    char quote;
    int r = name_skip(reader);

    if (r < 0 || !word_skip(reader, "="))
        return -EBADMSG;
    quote = *reader->at;
    if (quote != '"' && quote != '\'')
        return -EBADMSG;
    for (reader->at++; *reader->at != quote; reader->at++) {
        if (*reader->at == '\0' || *reader->at == '<')
            return -EBADMSG;
    }
    reader->at++;
    return 0;
}

/* Reads a start tag behind its '<'. */
static int start_read(struct reader *reader)
{
    const char *name = reader->at;
    int len = name_skip(reader);
    int r =
        len < 0 ? len : buf_printf(&reader->path, "%s%.*s", reader->path.len ? "/" : "", len, name);

    buf_clear(&reader->text);
    while (r == 0) {
        size_t gap = strspn(reader->at, BLANKS);

        reader->at += gap;
        if (word_skip(reader, "/>"))
            return element_end(reader);
        if (word_skip(reader, ">"))
            return 0;
        r = gap > 0 ? attribute_skip(reader) : -EBADMSG;
    }
    return r;
}

/* Reads an end tag behind its "</". */
static int end_read(struct reader *reader)
{
    const char *slash = strrchr(reader->path.data, '/');

    if (!word_skip(reader, slash ? slash + 1 : reader->path.data))
        return -EBADMSG;
    blanks_skip(reader);
    return word_skip(reader, ">") ? element_end(reader) : -EBADMSG;
}

/* Reads the root and all that it has. */
static int root_read(struct reader *reader)
{
    int r = word_skip(reader, "<") ? start_read(reader) : -EBADMSG;

    while (r == 0 && reader->path.len > 0) {
        r = text_read(reader);
        if (r == 0 && word_skip(reader, "</"))
            r = end_read(reader);
        else if (r == 0)
            r = word_skip(reader, "<") ? start_read(reader) : -EBADMSG;
    }
    return r;
}

static int declaration_skip(struct reader *reader)
{
    bool is_over;
    int r = 0;

    (void)word_skip(reader, "\xef\xbb\xbf");
    if (word_skip(reader, "<?xml")) {
        do {
            blanks_skip(reader);
            is_over = word_skip(reader, "?>");
            r = is_over ? 0 : attribute_skip(reader);
        } while (r == 0 && !is_over);
    }
    blanks_skip(reader);
    return r;
}

static void reader_done(struct reader *reader)
{
    buf_done(&reader->path);
    buf_done(&reader->text);
}

int s3_xml_read(const struct buf *document, s3_xml_fn *fn, void *context)
{
    const char *text = document->data ? document->data : "";
    cleanup_with(reader_done) struct reader reader = {
        .at = text,
        .end = text + document->len,
        .fn = fn,
        .context = context,
        .path = BUF_INIT(PATH_MAX_BYTES),
        .text = BUF_INIT(TEXT_MAX_BYTES),
    };
    int r = buf_add_str(&reader.path, "");

    if (r == 0)
        r = buf_add_str(&reader.text, "");
    if (r == 0)
        r = declaration_skip(&reader);
    if (r == 0)
        r = root_read(&reader);
    if (r < 0)
        return r;
    blanks_skip(&reader);
    return reader.at == reader.end ? 0 : -EBADMSG;
}
