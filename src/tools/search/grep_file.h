/* Searches one file. The file is read, not mapped: truncating it meanwhile is harmless, and a
 * growing file is read up to its initial size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/tool.h"

struct regex;
struct grep_reader;

/* The parameters of a search, shared by all threads. */
struct grep_search {
    const struct regex *regex;
    enum grep_mode mode;
    size_t context; /* lines around a match */
    size_t max_matches;
    size_t max_bytes;
};

enum grep_status { GREP_READ, GREP_BINARY, GREP_UNREADABLE, GREP_TOO_HARD };

/* The result for one file. Matches are counted by lines. */
struct grep_found {
    enum grep_status status;
    int error;        /* of GREP_UNREADABLE */
    uint64_t line;    /* of GREP_TOO_HARD */
    uint64_t matches; /* at most 1 for GREP_FILES */
    struct buf text;  /* the lines of the first `kept` matches, for GREP_CONTENT */
    uint32_t *ends;   /* end of each of these in the text, with its context */
    size_t kept, ends_cap;
};

void grep_found_done(struct grep_found *found);

/* The buffers of a thread. */
struct grep_reader *grep_reader_new(const struct grep_search *search);
void grep_reader_free(struct grep_reader *reader);

/* Searches the file fd. `path` is called once the path for the lines is needed; it returns memory
 * that grep_file frees. */
typedef char *grep_path_fn(void *context);
void grep_file(struct grep_reader *reader, int fd, grep_path_fn *path, void *context,
               struct grep_found *ret);
