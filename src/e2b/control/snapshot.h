/* Snapshots that clients of E2B have made. */
#pragma once

struct e2b_request;
struct e2b_objects;
struct err;
struct host;

/* Removes the snapshots that a killed daemon left unfinished. */
int e2b_snapshots_recover(struct host *host, struct e2b_objects *objects, struct err *err);

/* By name or id, as clients write it: with a tag or without. It is gone at once, and its template
 * when nothing stands on it. ERR_NOT_FOUND. */
int e2b_snapshot_delete(struct e2b_request *request, const char *word, struct err *err);
