/* Markers keep writers and collectors apart, without locks: OWNER/markers/writing-HOST-RANDOM and
 * OWNER/markers/collecting-HOST-RANDOM.
 *
 * Both put their own marker first and look for those of the other kind then, so at least one of two
 * sees the other. A collector that sees a writer gives up; a writer waits until no collector is
 * left. A marker is put again every ten minutes; one that is a day old, by the clock of the
 * storage, is that of a host that has died. Whoever finds its own marker removed must stop. */
#pragma once

#include "remote/archive/session.h"

enum archive_marker_kind { ARCHIVE_WRITING, ARCHIVE_COLLECTING };

struct archive_marker {
    char key[REMOTE_KEY_MAX + 1]; /* "": none */
    uint64_t put_ms;              /* of clock_ms */
};

int archive_marker_put(const struct archive_session *session, enum archive_marker_kind kind,
                       struct archive_marker *ret, struct err *err);

/* Puts a marker again if it is due. Fails with ERR_BUSY if somebody has removed it. */
int archive_marker_refresh(const struct archive_session *session, struct archive_marker *marker,
                           struct err *err);

/* The same, but always looks whether the marker is there. */
int archive_marker_check(const struct archive_session *session, struct archive_marker *marker,
                         struct err *err);

/* Removes a marker, if there is one; failures leave it to archive_forget_markers. */
void archive_marker_remove(const struct archive_session *session, struct archive_marker *marker);

/* Returns 1 with the key of a marker of this kind, 0 if there is none, or fails; removes those of
 * hosts that have died. `own` is the caller's. */
int archive_marker_find(const struct archive_session *session, const struct archive_marker *own,
                        enum archive_marker_kind kind, char ret_key[REMOTE_KEY_MAX + 1],
                        struct err *err);
