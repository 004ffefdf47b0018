/* /files of E2B's envd: whole files over plain HTTP. */
#pragma once

#include "e2b/core/e2b.h"

struct buf;

/* Checks the sandbox's token, or the signature of the URL. Fails with ERR_UNAUTHENTICATED. */
int e2b_files_may(const struct e2b_request *request, struct err *err);

/* What the X-Metadata-* headers say of a file, as wire/file.h has it. ERR_INVALID. */
int e2b_meta_read(const struct e2b_request *request, struct buf *ret, struct err *err);

/* Of an upload. */
extern const struct e2b_body_ops e2b_upload_body;
enum MHD_Result e2b_upload_answer(struct e2b_request *request);
void e2b_upload_close(struct e2b_request *request);
