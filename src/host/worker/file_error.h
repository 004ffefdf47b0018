/* What a file worker says of a failure, in a client's terms. */
#pragma once

#include "wire/file.h"

struct err;

/* Fills err, with the operation and the path, and returns the negative errno that stands for it. */
int file_error_set(struct err *err, enum file_message_type request,
                   const struct file_failure *failure);
