/* Output that is on disk: state/output/SANDBOX/p1.out and p1.err. dir_fd is state/output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record;

/* Brings what has come of a stream to disk, once it is `from_bytes` or more that is not there, or
 * it is the last and the rest is there. After a failure nothing more goes there, and the process
 * goes on. */
void output_file_write(int dir_fd, const char *sandbox, struct record *record, int stream,
                       uint64_t from_bytes, bool is_last);

/* Opens what an earlier life wrote, if anything; up to `ahead` bytes more than the record knows
 * may have been written. */
void output_files_reopen(int dir_fd, const char *sandbox, struct record *record, uint64_t ahead);

/* The same of a process that nobody knows more of. */
void output_files_recover(int dir_fd, const char *sandbox, struct record *record);

void output_files_remove(int dir_fd, const char *sandbox, const struct record *record);
