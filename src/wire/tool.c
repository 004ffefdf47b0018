// SPDX-License-Identifier: Apache-2.0
/* Encoding of values: u32 count, then each as
 *
 * - u8 type: enum tool_type
 * - TEXT: a text: u32 length, bytes, and a NUL that is not counted
 * - NUMBER, FLAG, CHOICE: u64
 * - TEXTS: u32 count, texts
 * - EDITS: u32 count, each the old text, the new text, u8 all */
#include "wire/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "wire/frame.h"

static bool put_tool_text(struct buf *out, const struct tool_text *text)
{
    return text->len <= TOOL_PARAMS_MAX && put_u32(out, (uint32_t)text->len) &&
           buf_add(out, text->data, text->len) == 0 && put_u8(out, 0);
}

static bool put_list(struct buf *out, const struct tool_value *value)
{
    bool ok = put_u32(out, (uint32_t)value->count);

    for (size_t i = 0; ok && i < value->count; i++) {
        const struct tool_edit *edit = value->type == TOOL_EDITS ? &value->edits[i] : NULL;

        ok = edit ? put_tool_text(out, &edit->old_text) && put_tool_text(out, &edit->new_text) &&
                        put_u8(out, edit->all)
                  : put_tool_text(out, &value->texts[i]);
    }
    return ok;
}

static bool put_value(struct buf *out, const struct tool_value *value)
{
    if (!put_u8(out, (uint8_t)value->type))
        return false;
    switch (value->type) {
    case TOOL_TEXT:
        return put_tool_text(out, &value->text);
    case TOOL_NUMBER:
    case TOOL_FLAG:
    case TOOL_CHOICE:
        return put_u64(out, (uint64_t)value->number);
    case TOOL_TEXTS:
    case TOOL_EDITS:
        return put_list(out, value);
    case TOOL_TYPES:
        break;
    }
    return false;
}

/* Returns an upper bound of the encoded size. */
static size_t values_size(const struct tool_value *values, size_t count)
{
    size_t ret = 0;

    for (size_t i = 0; i < count; i++) {
        const struct tool_value *value = &values[i];

        ret += 16 + (value->type == TOOL_TEXT ? value->text.len : 0);
        for (size_t k = 0; value->type == TOOL_TEXTS && k < value->count; k++)
            ret += 8 + value->texts[k].len;
        for (size_t k = 0; value->type == TOOL_EDITS && k < value->count; k++)
            ret += 16 + value->edits[k].old_text.len + value->edits[k].new_text.len;
    }
    return ret;
}

int tool_put_values(struct buf *out, const struct tool_value *values, size_t count)
{
    size_t start = out->len;
    bool ok;

    if (count > TOOL_VALUES_MAX)
        return -EMSGSIZE;
    for (size_t i = 0; i < count; i++)
        if ((values[i].type == TOOL_TEXTS || values[i].type == TOOL_EDITS) &&
            values[i].count > TOOL_LIST_MAX)
            return -EMSGSIZE;
    if (values_size(values, count) > TOOL_PARAMS_MAX)
        return -EMSGSIZE;
    ok = put_u32(out, (uint32_t)count);
    for (size_t i = 0; ok && i < count; i++)
        ok = put_value(out, &values[i]);
    if (!ok) {
        out->len = start;
        return -ENOBUFS;
    }
    return 0;
}

static void get_tool_text(struct reader *reader, struct tool_text *ret)
{
    ret->len = get_u32(reader);
    ret->data = reader->next;
    if (!reader->ok || reader->left <= ret->len || reader->next[ret->len] != '\0') {
        *ret = (struct tool_text){ .data = "" };
        reader->ok = false;
        return;
    }
    reader->next += ret->len + 1;
    reader->left -= ret->len + 1;
}

static bool get_bool(struct reader *reader)
{
    uint8_t value = get_u8(reader);

    if (value > 1)
        reader->ok = false;
    return value == 1;
}

static int get_list(struct reader *reader, struct tool_value *ret)
{
    size_t count = get_u32(reader);

    if (!reader->ok || count > TOOL_LIST_MAX)
        return -EPROTO;
    if (ret->type == TOOL_EDITS)
        ret->edits = calloc(count + 1, sizeof(*ret->edits));
    else
        ret->texts = calloc(count + 1, sizeof(*ret->texts));
    if (!ret->texts)
        return -ENOMEM;
    ret->count = count;
    for (size_t i = 0; reader->ok && i < count; i++) {
        if (ret->type == TOOL_EDITS) {
            get_tool_text(reader, &ret->edits[i].old_text);
            get_tool_text(reader, &ret->edits[i].new_text);
            ret->edits[i].all = get_bool(reader);
        } else {
            get_tool_text(reader, &ret->texts[i]);
        }
    }
    return reader->ok ? 0 : -EPROTO;
}

static int get_value(struct reader *reader, struct tool_value *ret)
{
    uint8_t type = get_u8(reader);

    if (!reader->ok || type >= TOOL_TYPES)
        return -EPROTO;
    ret->type = (enum tool_type)type;
    if (ret->type == TOOL_TEXT)
        get_tool_text(reader, &ret->text);
    else if (ret->type == TOOL_TEXTS || ret->type == TOOL_EDITS)
        return get_list(reader, ret);
    else
        ret->number = (int64_t)get_u64(reader);
    if (ret->type == TOOL_FLAG && ret->number != 0 && ret->number != 1)
        return -EPROTO;
    return reader->ok ? 0 : -EPROTO;
}

int tool_get_values(const char *data, size_t len, struct tool_values *ret)
{
    struct reader reader = { .next = data, .left = len, .ok = len <= TOOL_PARAMS_MAX };
    struct tool_values values = { .count = get_u32(&reader) };
    int r = reader.ok && values.count <= TOOL_VALUES_MAX ? 0 : -EPROTO;

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < values.count; i++)
        r = get_value(&reader, &values.at[i]);
    if (r == 0 && !reader_is_done(&reader))
        r = -EPROTO;
    if (r < 0)
        tool_values_done(&values);
    else
        *ret = values;
    return r;
}

void tool_values_done(struct tool_values *values)
{
    for (size_t i = 0; i < TOOL_VALUES_MAX; i++) {
        free(values->at[i].texts);
        values->at[i].texts = NULL;
    }
    values->count = 0;
}
