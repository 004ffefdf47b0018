/* Fetches blobs in parallel, each into a file that holtd has opened. */
#pragma once

#include "image/manifest.h"

struct err;
struct session;

/* Fetches the blobs that holtd lacks, from where their files end, and reports the progress. */
int fetch_blobs(struct session *session, const struct manifest *manifest, struct err *err);
