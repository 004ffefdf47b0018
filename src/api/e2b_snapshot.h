/* Snapshots that clients of E2B have made. */
#pragma once

struct e2b_request;
struct err;

/* By name or id, without a tag. It is gone at once, and its template when nothing stands on it.
 * ERR_NOT_FOUND. */
int e2b_snapshot_delete(struct e2b_request *request, const char *word, struct err *err);
