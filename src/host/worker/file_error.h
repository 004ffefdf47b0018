/* Converts failures of a file worker to errors for clients. */
#pragma once

#include "wire/file.h"

struct err;

/* Sets err, with the operation and the path, and returns the negative errno. */
int file_error_set(struct err *err, enum file_message_type request,
                   const struct file_failure *failure);
