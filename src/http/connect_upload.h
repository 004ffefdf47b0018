/* The body of a client stream: cut into messages, each handed to the service as it arrives. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct upload;
struct upload_intake;

/* Starts an upload with its first message. */
typedef int (*upload_begin_fn)(void *context, const json_t *first, struct upload **ret,
                               struct err *err);

/* Calls begin when the first message is complete. */
struct upload_intake *upload_intake_new(upload_begin_fn begin, void *context);

/* Takes the next bytes; blocks while the service works on them. False once the upload has failed:
 * the bytes were ignored, and upload_intake_finish says why. */
bool upload_intake_take(struct upload_intake *intake, const char *data, size_t len);

/* Makes the upload fail with this error, unless it has failed already. */
void upload_intake_fail(struct upload_intake *intake, int error, const struct err *err);

/* The body is complete: appends the JSON of the service's reply to out, or returns the first error.
 */
int upload_intake_finish(struct upload_intake *intake, struct buf *out, struct err *err);

/* Hands the upload to the caller. The body must be exactly its first message; the rest comes as raw
 * frames. */
int upload_intake_begun(struct upload_intake *intake, struct upload **ret, struct err *err);

/* Accepts NULL. */
void upload_intake_free(struct upload_intake *intake);
