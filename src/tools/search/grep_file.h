/* Searches one file and writes down what it finds. The file is read, not mapped: one that is cut
 * short meanwhile ends earlier, and one that grows without end is read up to its size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/tool.h"

struct regex;
struct grep_reader;

/* What is looked for, shared by all threads. */
struct grep_search {
    const struct regex *regex;
    enum grep_mode mode;
    size_t context; /* lines around a match */
    size_t max_matches;
    size_t max_bytes;
};

enum grep_status { GREP_READ, GREP_BINARY, GREP_UNREADABLE, GREP_TOO_HARD };

/* What is in a file. Matches are lines. */
struct grep_found {
    enum grep_status status;
    int error;        /* of GREP_UNREADABLE */
    uint64_t line;    /* of GREP_TOO_HARD */
    uint64_t matches; /* 0 or 1 for GREP_FILES: there the first is enough */
    struct buf text;  /* the lines of the first `kept` of them; for GREP_CONTENT */
    uint32_t *ends;   /* where in the text each of these ends, with its context */
    size_t kept, ends_cap;
};

void grep_found_done(struct grep_found *found);

/* Memory of a thread for reading files. */
struct grep_reader *grep_reader_new(const struct grep_search *search);
void grep_reader_free(struct grep_reader *reader);

/* Searches what fd has. `path` is asked for when it is needed first: what lines begin with, to be
 * freed. */
typedef char *grep_path_fn(void *context);
void grep_file(struct grep_reader *reader, int fd, grep_path_fn *path, void *context,
               struct grep_found *ret);
