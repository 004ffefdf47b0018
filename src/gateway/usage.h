/* Reads how many tokens a reply used, from the bytes of its body as they pass: from JSON, or from
 * the events of a stream. Knows the formats of Anthropic (messages) and OpenAI (chat completions,
 * responses). Keeps nothing of the text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/json_scan.h"

/* Tokens, each counted once: input has neither of the cached ones. */
struct token_counts {
    uint64_t input;
    uint64_t cache_read;
    uint64_t cache_write;
    uint64_t output;
};

struct usage_reader {
    struct json_scan scan;
    bool is_stream;
    bool has_input, has_output;
    bool is_whole;             /* the last message of a stream has come, or the whole object */
    bool includes_cached;      /* the input of OpenAI includes what was read from a cache */
    struct token_counts found; /* as the provider writes them */
    /* Of the events: */
    unsigned line; /* see usage.c */
    size_t prefix_len;
    bool is_empty_line, has_data, was_cr;
};

void usage_reader_init(struct usage_reader *reader, bool is_stream);

/* Takes the next bytes of the body, without framing. What is malformed is passed over. */
void usage_reader_feed(struct usage_reader *reader, const char *bytes, size_t len);

/* Returns whether the reply has said how much it used, to the end. A stream that was cut may have
 * said it in part; the counts that are known then are a lower bound. */
bool usage_reader_finish(const struct usage_reader *reader, struct token_counts *ret);
