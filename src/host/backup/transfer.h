/* Moves bundles between sandboxes and archives. The bytes are counted in transfer_done of the
 * sandbox, so that clients see how far it is. */
#pragma once

struct archive_info;
struct archive_store;
struct bundle_spool;
struct err;
struct export;
struct host;
struct sandbox;

/* What an archive is called, and what the list of archives says of it. */
struct transfer_target {
    const struct archive_store *store;
    const char *name;
    const char *description;
};

/* Writes an export to an archive, which was read back when this returns. Stops if the sandbox is
 * destroyed or the daemon ends. The texts of ret (NULL: not wanted) are freed by archive_info_done.
 */
int transfer_out(struct sandbox *sandbox, struct export *export,
                 const struct transfer_target *target, struct archive_info *ret, struct err *err);

/* Receives a bundle from an archive. sandbox: counts the bytes; NULL: nothing does. */
int transfer_in(struct host *host, struct sandbox *sandbox, const struct archive_store *store,
                const char *name, struct bundle_spool *ret, struct err *err);
