/* The logins to the web console in the registry. */
#pragma once

#include <stddef.h>

#include "base/access/session.h"

struct err;
struct host;

/* Records a session; it is on disk when this returns. */
int host_put_session(struct host *host, const struct session_row *row, struct err *err);

/* Removes a session, for good when this returns; no error when there is none. */
int host_remove_session(struct host *host, const char *id, struct err *err);

/* Lists all sessions; the caller frees the array. */
int host_list_sessions(struct host *host, struct session_row **ret, size_t *ret_count,
                       struct err *err);
