/* A tar archive that is written from the entries of a directory as they arrive. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct file_answer;
struct tar_writer;

/* out gets the archive; the caller takes the bytes away between the calls. top is the name of the
 * directory in it. NULL: out of memory. */
struct tar_writer *tar_writer_new(struct buf *out, const char *top);

/* Accepts NULL. */
void tar_writer_free(struct tar_writer *tar);

/* Adds an entry, or bytes of the last one. Sockets and files that cannot be read are left out. */
int tar_writer_add(struct tar_writer *tar, const struct file_answer *answer, struct err *err);

/* Writes the end of the archive. */
int tar_writer_finish(struct tar_writer *tar, struct err *err);
