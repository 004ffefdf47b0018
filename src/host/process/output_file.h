/* Process output on disk: state/output/SANDBOX/p1.out and p1.err. dir_fd is state/output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record;

/* Writes the unwritten bytes of a stream to disk if there are at least `from_bytes`, or if
 * is_last and the stream already has a file. After a failed write the stream is not written any
 * more, and the process continues. */
void output_file_write(int dir_fd, const char *sandbox, struct record *record, int stream,
                       uint64_t from_bytes, bool is_last);

/* Opens the files that a previous daemon wrote, if any. They may contain up to `ahead` bytes
 * more than the record knows of. */
void output_files_reopen(int dir_fd, const char *sandbox, struct record *record, uint64_t ahead);

/* Opens the files of a process whose only trace they are. */
void output_files_recover(int dir_fd, const char *sandbox, struct record *record);

void output_files_remove(int dir_fd, const char *sandbox, const struct record *record);
