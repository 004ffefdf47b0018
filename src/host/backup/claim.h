/* Claims: the object OWNER/claims/MARK says which host may use an archive of a deep pause, so that
 * no two hosts bring its sandbox back. Its content is the name of that host. The host that makes
 * the archive has the claim until the sandbox is recorded as deep-paused.
 *
 * A claim of another host is kept after the archive is gone: it tells the host that has paused the
 * sandbox that it has moved. That host removes it. */
#pragma once

struct archive_store;
struct err;

/* Makes the claim of this host, unless it has it. Fails with ERR_BUSY if another host has one. */
int claim_take(const struct archive_store *store, const char *mark, struct err *err);

enum claim_holder { CLAIM_NONE, CLAIM_OURS, CLAIM_FOREIGN };

/* Finds out which host has the claim. */
int claim_find(const struct archive_store *store, const char *mark, enum claim_holder *ret,
               struct err *err);

/* Removes the claim of this host, if it has it. */
int claim_drop(const struct archive_store *store, const char *mark, struct err *err);

/* Removes any claim; a missing one is no error. */
int claim_remove(const struct archive_store *store, const char *mark, struct err *err);
