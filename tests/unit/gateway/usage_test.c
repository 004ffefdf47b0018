// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "check.h"
#include "gateway/usage.h"

/* Feeds a body in parts of every size, which must not change what is found. */
static bool usage_of(const char *text, bool is_stream, struct token_counts *ret)
{
    size_t len = strlen(text);
    struct token_counts first = { 0 };
    bool is_known = false;

    for (size_t part = 1; part <= len; part++) {
        struct usage_reader reader;
        struct token_counts counts;
        bool was_known;

        usage_reader_init(&reader, is_stream);
        for (size_t i = 0; i < len; i += part)
            usage_reader_feed(&reader, text + i, part < len - i ? part : len - i);
        was_known = usage_reader_finish(&reader, &counts);
        CHECK(part == 1 || (was_known == is_known && memcmp(&counts, &first, sizeof(first)) == 0),
              "(parts of %zu)", part);
        is_known = was_known;
        first = counts;
    }
    *ret = first;
    return is_known;
}

static void check_counts(const struct token_counts *counts, uint64_t input, uint64_t read,
                         uint64_t write, uint64_t output)
{
    CHECK(counts->input == input && counts->cache_read == read && counts->cache_write == write &&
              counts->output == output,
          "(%llu %llu %llu %llu)", (unsigned long long)counts->input,
          (unsigned long long)counts->cache_read, (unsigned long long)counts->cache_write,
          (unsigned long long)counts->output);
}

static void messages_of_anthropic_are_read(void)
{
    struct token_counts counts;

    CHECK(usage_of("{\"type\":\"message\",\"content\":[{\"text\":\"{\\\"usage\\\": 1}\"}],"
                   "\"usage\":{\"input_tokens\":12,\"cache_creation_input_tokens\":3,"
                   "\"cache_read_input_tokens\":400,\"output_tokens\":7}}",
                   false, &counts));
    check_counts(&counts, 12, 400, 3, 7);
}

static const char anthropic_stream[] =
    "event: message_start\n"
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,"
    "\"cache_read_input_tokens\":9,\"output_tokens\":1}}}\n\n"
    ": a comment\n"
    "event: content_block_delta\n"
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"data: {\\\"usage\\\"\"}}\n\n"
    "what is this\n"
    "data: {\"type\":\"message_delta\",\"usage\":{\"output\n\n"
    "event: message_delta\n"
    "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":42}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n";

static void streams_of_anthropic_are_read_past_malformed_events(void)
{
    struct token_counts counts;

    CHECK(usage_of(anthropic_stream, true, &counts));
    check_counts(&counts, 5, 9, 0, 42);
}

static void every_end_of_line_is_one(void)
{
    struct token_counts counts;

    CHECK(usage_of("data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\r\n\r\n", true,
                   &counts));
    check_counts(&counts, 1, 0, 0, 2);
    CHECK(usage_of("data: {\"x\":1}\r\rdata:{\"usage\":{\"prompt_tokens\":1,"
                   "\"completion_tokens\":2}}\r\r",
                   true, &counts));
    check_counts(&counts, 1, 0, 0, 2);
}

static void cached_tokens_of_openai_are_counted_once(void)
{
    struct token_counts counts;

    CHECK(usage_of("{\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":5,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":60}}}",
                   false, &counts));
    check_counts(&counts, 40, 60, 0, 5);
    CHECK(
        usage_of("data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"usage\":{}}],"
                 "\"usage\":{\"input_tokens\":100,\"input_tokens_details\":"
                 "{\"cached_tokens\":60},\"output_tokens\":5}}}\n\n",
                 true, &counts));
    check_counts(&counts, 40, 60, 0, 5);
}

static void a_stream_that_is_cut_is_not_known(void)
{
    struct token_counts counts;

    CHECK(!usage_of("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,"
                    "\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_bl",
                    true, &counts));
    CHECK(counts.input == 5);
    CHECK(!usage_of("{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}", false, &counts));
    CHECK(!usage_of("data: {\"choices\":[]}\n\ndata: [DONE]\n\n", true, &counts));
}

int main(void)
{
    RUN(messages_of_anthropic_are_read);
    RUN(streams_of_anthropic_are_read_past_malformed_events);
    RUN(every_end_of_line_is_one);
    RUN(cached_tokens_of_openai_are_counted_once);
    RUN(a_stream_that_is_cut_is_not_known);
    return 0;
}
