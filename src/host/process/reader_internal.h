/* A reader as its record sees it. */
#pragma once

#include "host/process/record.h"

struct output_reader {
    struct record *record;      /* referenced */
    struct output_reader *next; /* in the record's list */
    bool follows;
    bool is_flow;
    int event_fd;
    uint64_t at[PROCESS_STREAMS]; /* the next byte to read; under the record's lock */
};

void reader_wake(const struct output_reader *reader);
