/* Reads JSON as it comes, in parts of any size and without keeping it. Reports the strings, numbers
 * and words that are members of objects near the root; what is inside of arrays is passed over.
 * Bodies of 100 MB and events without a limit are read in constant memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JSON_SCAN_DEPTH_MAX = 512, /* of nested values; more are refused */
    JSON_SCAN_LEVELS = 4,      /* names of a path */
    JSON_SCAN_PATH_SIZE = 160,
    JSON_SCAN_TEXT_SIZE = 256,
};

enum json_scan_kind { JSON_SCAN_STRING, JSON_SCAN_OTHER };

struct json_scan_value {
    const char *path; /* names from the root, with dots: "message.usage.input_tokens" */
    enum json_scan_kind kind;
    const char *text;    /* of a string without quotes, escapes as they are; terminated */
    bool is_cut;         /* the text is longer than JSON_SCAN_TEXT_SIZE - 1 */
    bool has_escape;     /* of a string */
    uint64_t start, end; /* bytes since json_scan_init; of a string with its quotes */
};

typedef void json_scan_fn(void *data, const struct json_scan_value *value);

struct json_scan {
    json_scan_fn *report;
    void *data;
    unsigned state;
    bool is_key, has_escape, is_escaped;
    bool has_odd_name; /* a member of the root is not plain ASCII, or longer than a path */
    uint64_t offset, start;
    unsigned depth;
    unsigned array_depth; /* of the outermost array that it is in; 0: none */
    uint8_t is_object[JSON_SCAN_DEPTH_MAX / 8];
    size_t path_len[JSON_SCAN_LEVELS + 1]; /* of the path to the members of each level */
    char path[JSON_SCAN_PATH_SIZE];
    size_t text_len;
    char text[JSON_SCAN_TEXT_SIZE];
};

/* Starts with a new value, which must be an object. */
void json_scan_init(struct json_scan *scan, json_scan_fn *report, void *data);

/* Takes the next bytes. Returns 0, or -EBADMSG for what no parser accepts, from then on. */
int json_scan_feed(struct json_scan *scan, const char *bytes, size_t len);

/* Returns whether the object is complete and correct so far. */
bool json_scan_is_done(const struct json_scan *scan);
