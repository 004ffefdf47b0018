// SPDX-License-Identifier: Apache-2.0
#include "http/framing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "http/reply.h"

enum { LINE_END_BYTES = 2 }; /* CR LF; libmicrohttpd accepts one of them alone too */

/* libmicrohttpd (0.9.75) splits the header in place: each name and value is where it was received,
 * with a NUL behind it. Hence the fields of a well-formed header lie next to each other. A gap
 * means bytes that a reader of C strings does not see: a NUL in a value, a folded line
 * (libmicrohttpd appends it to the name, in other memory) or a bare CR or LF at the end of a line.
 *
 * libmicrohttpd overwrites CR, LF and the colon with NUL. Hence a NUL at the end of a line instead
 * of CR, and a colon instead of the CR of the last, empty line, go unnoticed. */
struct framing {
    const char *end; /* of the last value */
    uintptr_t next;  /* where the next name must begin */
    unsigned hosts, lengths, encodings, sandboxes, ports;
    bool has_unknown_encoding;
    bool is_malformed;
};

/* token of RFC 9110: what a name may consist of. */
static bool is_token(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!#$%&'*+-.^_`|~";

    return *text != '\0' && text[strspn(text, letters)] == '\0';
}

static bool has_control_character(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if ((*at < ' ' && *at != '\t') || *at == 0x7f)
            return true;
    return false;
}

/* Whether a value stands behind its name, with nothing but blanks between the two. */
static bool is_adjacent(const char *name, const char *value)
{
    const char *at = name + strlen(name) + 1;

    if ((uintptr_t)value < (uintptr_t)at)
        return false;
    return strspn(at, " \t") == (uintptr_t)value - (uintptr_t)at;
}

static void field_count(struct framing *framing, const char *name, const char *value)
{
    framing->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    framing->sandboxes += strcasecmp(name, "E2b-Sandbox-Id") == 0;
    framing->ports += strcasecmp(name, "E2b-Sandbox-Port") == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->encodings++;
        framing->has_unknown_encoding |= strcasecmp(value, "chunked") != 0;
    }
}

static enum MHD_Result field_check(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct framing *framing = context;

    (void)kind;
    if ((uintptr_t)name != framing->next || framing->end[1] != '\0' || !value ||
        !is_adjacent(name, value) || !is_token(name) || has_control_character(value)) {
        framing->is_malformed = true;
        return MHD_NO;
    }
    framing->end = value + strlen(value);
    framing->next = (uintptr_t)framing->end + LINE_END_BYTES;
    field_count(framing, name, value);
    return MHD_YES;
}

/* Whether the fields fill the header from its first byte to the empty line at its end. */
static bool header_is_whole(const struct framing *framing, struct MHD_Connection *connection,
                            const struct request_line *line)
{
    static const char overwritten[LINE_END_BYTES * 2];
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return size && framing->next + LINE_END_BYTES == (uintptr_t)line->verb + size->header_size &&
           memcmp(framing->end, overwritten, sizeof(overwritten)) == 0;
}

/* Whether the path has an encoded NUL, where libmicrohttpd would end it. */
static bool path_has_nul(const char *target)
{
    size_t len = strcspn(target, "?");
    const char *at = strstr(target, "%00");

    return at && at < target + len;
}

/* Whether the parts of the first line have one blank between them. */
static bool first_line_is_whole(const struct request_line *line)
{
    return line->version && is_token(line->verb) && !has_control_character(line->target) &&
           !path_has_nul(line->target) &&
           (uintptr_t)line->verb + strlen(line->verb) + 1 + strlen(line->target) + 1 ==
               (uintptr_t)line->version;
}

const struct refusal *framing_check(struct MHD_Connection *connection,
                                    const struct request_line *line)
{
    struct framing framing = { 0 };

    if (!first_line_is_whole(line))
        return &refuse_header;
    framing.end = line->version + strlen(line->version);
    framing.next = (uintptr_t)framing.end + LINE_END_BYTES;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, field_check, &framing);
    if (framing.is_malformed || !header_is_whole(&framing, connection, line))
        return &refuse_header;
    if (framing.hosts > 1 || framing.lengths + framing.encodings > 1 ||
        framing.has_unknown_encoding || framing.sandboxes > 1 || framing.ports > 1)
        return &refuse_framing;
    return NULL;
}
