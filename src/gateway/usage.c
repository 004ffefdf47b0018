// SPDX-License-Identifier: Apache-2.0
#include "gateway/usage.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"

enum usage_line {
    LINE_PREFIX, /* may become "data:" */
    LINE_DATA,
    LINE_OTHER,
};

enum usage_what { USAGE_INPUT, USAGE_OUTPUT, USAGE_CACHE_READ, USAGE_CACHE_WRITE };

static const struct {
    const char *name;
    enum usage_what what;
    bool is_openai; /* its input includes what was read from a cache */
} usage_names[] = {
    { "input_tokens", USAGE_INPUT, false },
    { "output_tokens", USAGE_OUTPUT, false },
    { "cache_read_input_tokens", USAGE_CACHE_READ, false },
    { "cache_creation_input_tokens", USAGE_CACHE_WRITE, false },
    { "prompt_tokens", USAGE_INPUT, true },
    { "completion_tokens", USAGE_OUTPUT, true },
    { "prompt_tokens_details.cached_tokens", USAGE_CACHE_READ, true },
    { "input_tokens_details.cached_tokens", USAGE_CACHE_READ, true },
};

/* Where an object of counts may be: at the root, in the first message of Anthropic, in the last
 * one of OpenAI's responses. */
static const char *const usage_places[] = { "usage.", "message.usage.", "response.usage." };

static void count_set(struct usage_reader *reader, size_t name, uint64_t count)
{
    struct token_counts *found = &reader->found;

    reader->includes_cached |= usage_names[name].is_openai;
    switch (usage_names[name].what) {
    case USAGE_INPUT:
        reader->has_input = true;
        found->input = count;
        break;
    case USAGE_OUTPUT:
        reader->has_output = true;
        found->output = count;
        break;
    case USAGE_CACHE_READ:
        found->cache_read = count;
        break;
    case USAGE_CACHE_WRITE:
        found->cache_write = count;
        break;
    }
}

/* The events that carry the final counts. */
static bool type_is_last(const char *type)
{
    return strcmp(type, "message_delta") == 0 || strcmp(type, "message_stop") == 0 ||
           strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0 ||
           strcmp(type, "response.failed") == 0;
}

static void usage_found(void *data, const struct json_scan_value *value)
{
    struct usage_reader *reader = data;
    const char *path = value->path;
    uint64_t count;

    if (value->kind == JSON_SCAN_STRING) {
        if (strcmp(path, "type") == 0)
            reader->is_whole |= type_is_last(value->text);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(usage_places); i++) {
        size_t len = strlen(usage_places[i]);

        if (strncmp(path, usage_places[i], len) != 0)
            continue;
        for (size_t j = 0; j < ARRAY_SIZE(usage_names); j++)
            if (strcmp(path + len, usage_names[j].name) == 0 && !value->is_cut &&
                parse_u64(value->text, &count) == 0)
                count_set(reader, j, count);
        /* A chunk of chat completions with counts is the last one with anything to say. */
        if (i == 0 && strcmp(path + len, "completion_tokens") == 0)
            reader->is_whole = true;
    }
}

void usage_reader_init(struct usage_reader *reader, bool is_stream)
{
    *reader = (struct usage_reader){ .is_stream = is_stream, .is_empty_line = true };
    json_scan_init(&reader->scan, usage_found, reader);
}

/* --- events --- */

static void line_end(struct usage_reader *reader)
{
    if (reader->is_empty_line && reader->has_data) { /* the end of an event */
        json_scan_init(&reader->scan, usage_found, reader);
        reader->has_data = false;
    }
    reader->line = LINE_PREFIX;
    reader->prefix_len = 0;
    reader->is_empty_line = true;
}

static void prefix_take(struct usage_reader *reader, char c)
{
    static const char prefix[] = "data:";

    if (c != prefix[reader->prefix_len]) {
        reader->line = LINE_OTHER;
    } else if (++reader->prefix_len == sizeof(prefix) - 1) {
        reader->line = LINE_DATA;
        reader->has_data = true;
    }
}

/* Returns how many bytes of a line come before its end. */
static size_t line_rest(const char *bytes, size_t len)
{
    size_t n = 0;

    while (n < len && bytes[n] != '\n' && bytes[n] != '\r')
        n++;
    return n;
}

static void events_feed(struct usage_reader *reader, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t rest;

        if (bytes[i] == '\n' || bytes[i] == '\r') {
            if (bytes[i] == '\r' || !reader->was_cr) /* \r\n is one end */
                line_end(reader);
            reader->was_cr = bytes[i++] == '\r';
            continue;
        }
        reader->was_cr = reader->is_empty_line = false;
        if (reader->line == LINE_PREFIX) {
            prefix_take(reader, bytes[i++]);
            continue;
        }
        rest = line_rest(bytes + i, len - i);
        if (reader->line == LINE_DATA)
            (void)json_scan_feed(&reader->scan, bytes + i, rest);
        i += rest;
    }
}

void usage_reader_feed(struct usage_reader *reader, const char *bytes, size_t len)
{
    if (reader->is_stream)
        events_feed(reader, bytes, len);
    else
        (void)json_scan_feed(&reader->scan, bytes, len);
}

bool usage_reader_finish(const struct usage_reader *reader, struct token_counts *ret)
{
    bool is_whole = reader->is_stream ? reader->is_whole : json_scan_is_done(&reader->scan);

    *ret = reader->found;
    if (reader->includes_cached)
        ret->input -= ret->cache_read < ret->input ? ret->cache_read : ret->input;
    return is_whole && reader->has_input && reader->has_output;
}
