// SPDX-License-Identifier: Apache-2.0
#include "egress/dns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"

enum {
    HEADER = 12,
    FLAG_REPLY = 0x8000,
    FLAG_CUT = 0x0200,
    FLAG_RECURSE = 0x0100,
    FLAG_CAN_RECURSE = 0x0080,
    OPCODE_MASK = 0x7800,
    CODE_MASK = 0x000f,
    CLASS_INTERNET = 1,
    TYPE_OPT = 41,
    OPTION_EXTENDED_ERROR = 15,
    LABEL_MAX = 63,
    POINTERS_MAX = 32, /* that are followed for one name */
    POINTER_TO_QUESTION = 0xc00c,
    CLIENT_UDP_MIN = 512,
    TTL_MAX = 86400,
    REASON_MAX = 200,
};

/* A message that is read in order. */
struct cursor {
    const uint8_t *data;
    size_t len;
    size_t at;
    bool is_bad;
};

static unsigned u16_take(struct cursor *cursor)
{
    unsigned value;

    if (cursor->is_bad || cursor->len - cursor->at < 2) {
        cursor->is_bad = true;
        return 0;
    }
    value = (unsigned)cursor->data[cursor->at] << 8 | cursor->data[cursor->at + 1];
    cursor->at += 2;
    return value;
}

static uint32_t u32_take(struct cursor *cursor)
{
    uint32_t high = u16_take(cursor);

    return high << 16 | u16_take(cursor);
}

static const uint8_t *bytes_take(struct cursor *cursor, size_t len)
{
    const uint8_t *bytes = cursor->data + cursor->at;

    if (cursor->is_bad || cursor->len - cursor->at < len) {
        cursor->is_bad = true;
        return NULL;
    }
    cursor->at += len;
    return bytes;
}

/* Takes a name, following pointers, which must lead backwards. Returns its length in wire form, or
 * 0. */
static size_t name_take(struct cursor *cursor, uint8_t ret[DNS_WIRE_NAME_MAX])
{
    size_t at = cursor->at, len = 0, limit = cursor->len;
    bool has_jumped = false;

    for (int pointers = 0; !cursor->is_bad && at < limit;) {
        unsigned size = cursor->data[at];

        if ((size & 0xc0) == 0xc0) {
            size_t target;

            if (at + 1 >= limit)
                break;
            target = (size & 0x3fU) << 8 | cursor->data[at + 1];
            if (!has_jumped)
                cursor->at = at + 2;
            has_jumped = true;
            if (target >= at || ++pointers > POINTERS_MAX)
                break;
            at = target;
            continue;
        }
        if (size > LABEL_MAX || at + 1 + size > limit || len + 1 + size > DNS_WIRE_NAME_MAX)
            break;
        memcpy(ret + len, cursor->data + at, size + 1);
        len += size + 1;
        at += size + 1;
        if (size == 0) {
            if (!has_jumped)
                cursor->at = at;
            return len;
        }
    }
    cursor->is_bad = true;
    return 0;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

/* Returns false for a name with bytes that its text could not show. */
static bool name_to_text(const uint8_t *wire, char ret[DNS_TEXT_NAME_MAX + 1])
{
    size_t out = 0;
    bool is_plain = true;

    for (size_t at = 0; wire[at] != 0; at += wire[at] + 1U) {
        if (out > 0)
            ret[out++] = '.';
        for (size_t i = 1; i <= wire[at]; i++) {
            char c = (char)wire[at + i];

            is_plain = is_plain && c > ' ' && c < 0x7f && c != '.' && c != '\\';
            ret[out] = '?';
            if (c > ' ' && c < 0x7f)
                ret[out] = lower(c);
            out++;
        }
    }
    ret[out] = '\0';
    return is_plain;
}

static bool names_equal(const uint8_t *one, size_t one_len, const uint8_t *other, size_t other_len)
{
    if (one_len != other_len)
        return false;
    for (size_t i = 0; i < one_len; i++)
        if (lower((char)one[i]) != lower((char)other[i]))
            return false;
    return true;
}

bool dns_type_is_known(uint16_t type)
{
    return type == DNS_A || type == DNS_AAAA || type == DNS_CNAME || type == DNS_PTR ||
           type == DNS_MX || type == DNS_TXT || type == DNS_SRV || type == DNS_SVCB ||
           type == DNS_HTTPS;
}

/* Looks for the client's OPT record in the additional section. */
static void options_find(struct cursor *cursor, unsigned records, struct dns_query *ret)
{
    uint8_t owner[DNS_WIRE_NAME_MAX];

    for (unsigned i = 0; i < records && !cursor->is_bad && !ret->has_options; i++) {
        size_t owner_len = name_take(cursor, owner);
        unsigned type = u16_take(cursor), class = u16_take(cursor);

        (void)u32_take(cursor);
        (void)bytes_take(cursor, u16_take(cursor));
        if (cursor->is_bad || owner_len != 1 || type != TYPE_OPT)
            continue;
        ret->has_options = true;
        if (class > CLIENT_UDP_MIN)
            ret->udp_max = (uint16_t)(class < DNS_UDP_MAX ? class : DNS_UDP_MAX);
    }
}

int dns_query_parse(const void *data, size_t len, struct dns_query *ret)
{
    struct cursor cursor = { .data = data, .len = len };
    unsigned flags, questions, answers, authorities, additional, class;
    bool is_plain;

    *ret = (struct dns_query){ .udp_max = CLIENT_UDP_MIN };
    ret->id = (uint16_t)u16_take(&cursor);
    flags = u16_take(&cursor);
    questions = u16_take(&cursor);
    answers = u16_take(&cursor);
    authorities = u16_take(&cursor);
    additional = u16_take(&cursor);
    if (cursor.is_bad || flags & (FLAG_REPLY | OPCODE_MASK) || questions != 1 || answers != 0 ||
        authorities != 0)
        return -EBADMSG;
    ret->wants_recursion = flags & FLAG_RECURSE;
    ret->wire_len = name_take(&cursor, ret->wire);
    ret->type = (uint16_t)u16_take(&cursor);
    class = u16_take(&cursor);
    if (cursor.is_bad)
        return -EBADMSG;
    is_plain = name_to_text(ret->wire, ret->name);
    options_find(&cursor, additional, ret);
    return is_plain && class == CLASS_INTERNET && ret->wire_len > 1 ? 0 : -EINVAL;
}

static int u16_put(struct buf *out, unsigned value)
{
    const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

    return buf_add(out, bytes, sizeof(bytes));
}

static int header_put(struct buf *out, uint16_t id, unsigned flags, unsigned answers,
                      unsigned additional)
{
    const unsigned words[] = { id, flags, 1, answers, 0, additional };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(words) / sizeof(words[0]); i++)
        r = u16_put(out, words[i]);
    return r;
}

/* An OPT record: type, size of datagrams, no flags, and the length of its options. */
static int options_put(struct buf *out, size_t options_len)
{
    static const uint8_t root = 0;
    int r = buf_add(out, &root, 1);

    if (r == 0)
        r = u16_put(out, TYPE_OPT);
    if (r == 0)
        r = u16_put(out, DNS_UDP_MAX);
    if (r == 0)
        r = u16_put(out, 0);
    if (r == 0)
        r = u16_put(out, 0);
    return r == 0 ? u16_put(out, (unsigned)options_len) : r;
}

int dns_query_write(const struct dns_query *query, uint16_t id, struct buf *out)
{
    uint8_t wire[DNS_WIRE_NAME_MAX];
    int r = header_put(out, id, FLAG_RECURSE, 0, 1);

    for (size_t i = 0; i < query->wire_len; i++) /* lengths of labels are below 'A' */
        wire[i] = (uint8_t)lower((char)query->wire[i]);
    if (r == 0)
        r = buf_add(out, wire, query->wire_len);
    if (r == 0)
        r = u16_put(out, query->type);
    if (r == 0)
        r = u16_put(out, CLASS_INTERNET);
    return r == 0 ? options_put(out, 0) : r;
}

/* Copies data that is a name behind `front` bytes. */
static bool named_data_take(struct cursor *cursor, size_t front, struct dns_record *ret)
{
    uint8_t data[DNS_WIRE_NAME_MAX + 8];
    const uint8_t *bytes = bytes_take(cursor, front);
    size_t len;

    if (!bytes)
        return false;
    memcpy(data, bytes, front);
    len = name_take(cursor, data + front);
    if (len == 0)
        return false;
    ret->data_len = front + len;
    ret->data = xcalloc(1, ret->data_len);
    memcpy(ret->data, data, ret->data_len);
    return true;
}

static bool text_data_take(struct cursor *cursor, size_t len, struct dns_record *ret)
{
    const uint8_t *bytes = bytes_take(cursor, len);

    if (!bytes)
        return false;
    for (size_t at = 0; at < len; at += bytes[at] + 1U)
        if (at + 1 + bytes[at] > len)
            return false;
    ret->data_len = len;
    ret->data = xcalloc(1, len + 1);
    memcpy(ret->data, bytes, len);
    return true;
}

static bool address_take(struct cursor *cursor, size_t len, struct dns_record *ret)
{
    const uint8_t *bytes = bytes_take(cursor, len);
    bool is_v4 = ret->type == DNS_A;

    if (!bytes || len != (is_v4 ? 4 : 16))
        return false;
    if (is_v4) {
        struct sockaddr_in address = { .sin_family = AF_INET };

        memcpy(&address.sin_addr, bytes, 4);
        ret->address = net_address_of((const struct sockaddr *)&address);
    } else {
        struct sockaddr_in6 address = { .sin6_family = AF_INET6 };

        memcpy(&address.sin6_addr, bytes, 16);
        ret->address = net_address_of((const struct sockaddr *)&address);
    }
    return true;
}

/* Takes the data of a record; returns 1, 0 for a type that is not passed on, or -EBADMSG. */
static int data_take(struct cursor *cursor, size_t len, struct dns_record *ret)
{
    size_t end = cursor->at + len;
    bool is_whole;

    if (cursor->is_bad || cursor->len - cursor->at < len)
        return -EBADMSG;
    switch (ret->type) {
    case DNS_A:
    case DNS_AAAA:
        is_whole = address_take(cursor, len, ret);
        break;
    case DNS_CNAME:
    case DNS_PTR:
        is_whole = named_data_take(cursor, 0, ret);
        break;
    case DNS_MX:
        is_whole = named_data_take(cursor, 2, ret);
        break;
    case DNS_SRV:
        is_whole = named_data_take(cursor, 6, ret);
        break;
    case DNS_TXT:
        is_whole = text_data_take(cursor, len, ret);
        break;
    default:
        cursor->at = end;
        return 0;
    }
    return is_whole && cursor->at == end ? 1 : -EBADMSG;
}

static int record_take(struct cursor *cursor, struct dns_reply *reply)
{
    struct dns_record *record = &reply->records[reply->count];
    unsigned class;
    size_t len;
    int r;

    *record = (struct dns_record){ .type = 0 };
    record->owner_len = name_take(cursor, record->owner);
    record->type = (uint16_t)u16_take(cursor);
    class = u16_take(cursor);
    record->ttl = u32_take(cursor);
    if (record->ttl > TTL_MAX)
        record->ttl = record->ttl > INT32_MAX ? 0 : TTL_MAX;
    len = u16_take(cursor);
    r = data_take(cursor, len, record);
    if (r > 0 && class == CLASS_INTERNET) {
        reply->count++;
        return 0;
    }
    free(record->data);
    return r < 0 ? r : 0;
}

int dns_reply_parse(const void *data, size_t len, const struct dns_query *query, uint16_t id,
                    struct dns_reply *ret)
{
    struct cursor cursor = { .data = data, .len = len };
    uint8_t name[DNS_WIRE_NAME_MAX];
    unsigned flags, questions, answers;
    size_t name_len;
    int r = 0;

    *ret = (struct dns_reply){ .count = 0 };
    if (u16_take(&cursor) != id)
        return -EBADMSG;
    flags = u16_take(&cursor);
    questions = u16_take(&cursor);
    answers = u16_take(&cursor);
    (void)u32_take(&cursor);
    if (cursor.is_bad || !(flags & FLAG_REPLY) || flags & OPCODE_MASK || questions != 1)
        return -EBADMSG;
    name_len = name_take(&cursor, name);
    if (cursor.is_bad || !names_equal(name, name_len, query->wire, query->wire_len) ||
        u16_take(&cursor) != query->type || u16_take(&cursor) != CLASS_INTERNET)
        return -EBADMSG;
    ret->code = (enum dns_code)(flags & CODE_MASK);
    if (ret->code != DNS_OK && ret->code != DNS_NO_NAME)
        ret->code = DNS_FAILED;
    ret->is_cut = flags & FLAG_CUT;
    ret->records = xcalloc(DNS_RECORDS_MAX, sizeof(*ret->records));
    if (ret->is_cut) /* some of the records would pass for all of them */
        return 0;
    for (unsigned i = 0; r == 0 && i < answers && ret->count < DNS_RECORDS_MAX; i++)
        r = record_take(&cursor, ret);
    return r;
}

void dns_reply_done(struct dns_reply *reply)
{
    for (size_t i = 0; i < reply->count; i++)
        free(reply->records[i].data);
    free(reply->records);
    *reply = (struct dns_reply){ .count = 0 };
}

void dns_reply_remove(struct dns_reply *reply, size_t index)
{
    free(reply->records[index].data);
    reply->count--;
    memmove(&reply->records[index], &reply->records[index + 1],
            (reply->count - index) * sizeof(reply->records[0]));
}

static int record_put(struct buf *out, const struct dns_query *query,
                      const struct dns_record *record)
{
    bool is_asked = names_equal(record->owner, record->owner_len, query->wire, query->wire_len);
    bool is_address = record->type == DNS_A || record->type == DNS_AAAA;
    size_t len = record->type == DNS_A ? 4 : record->type == DNS_AAAA ? 16 : record->data_len;
    int r = is_asked ? u16_put(out, POINTER_TO_QUESTION)
                     : buf_add(out, record->owner, record->owner_len);

    if (r == 0)
        r = u16_put(out, record->type);
    if (r == 0)
        r = u16_put(out, CLASS_INTERNET);
    if (r == 0)
        r = u16_put(out, record->ttl >> 16);
    if (r == 0)
        r = u16_put(out, record->ttl & 0xffff);
    if (r == 0)
        r = u16_put(out, (unsigned)len);
    if (r != 0)
        return r;
    return buf_add(out, is_address ? record->address.bytes : record->data, len);
}

static int reason_put(struct buf *out, const struct dns_reason *reason)
{
    size_t len = reason->text ? strnlen(reason->text, REASON_MAX) : 0;
    int r;

    if (reason->code == DNS_NO_REASON)
        return options_put(out, 0);
    r = options_put(out, 6 + len);
    if (r == 0)
        r = u16_put(out, OPTION_EXTENDED_ERROR);
    if (r == 0)
        r = u16_put(out, (unsigned)(2 + len));
    if (r == 0)
        r = u16_put(out, (unsigned)reason->code);
    return r == 0 && len > 0 ? buf_add(out, reason->text, len) : r;
}

static int message_put(struct buf *out, const struct dns_query *query,
                       const struct dns_reply *reply, const struct dns_reason *reason,
                       size_t records)
{
    unsigned flags = FLAG_REPLY | FLAG_CAN_RECURSE | (query->wants_recursion ? FLAG_RECURSE : 0) |
                     (unsigned)reply->code |
                     (reply->is_cut || records < reply->count ? FLAG_CUT : 0);
    int r = header_put(out, query->id, flags, (unsigned)records, query->has_options ? 1 : 0);

    if (r == 0)
        r = buf_add(out, query->wire, query->wire_len);
    if (r == 0)
        r = u16_put(out, query->type);
    if (r == 0)
        r = u16_put(out, CLASS_INTERNET);
    for (size_t i = 0; r == 0 && i < records; i++)
        r = record_put(out, query, &reply->records[i]);
    return r == 0 && query->has_options ? reason_put(out, reason) : r;
}

int dns_reply_write(const struct dns_query *query, const struct dns_reply *reply,
                    const struct dns_reason *reason, size_t max, struct buf *out)
{
    size_t start = out->len;
    int r = message_put(out, query, reply, reason, reply->count);

    if (r == 0 && out->len - start <= max)
        return 0;
    out->len = start;
    return message_put(out, query, reply, reason, 0);
}
