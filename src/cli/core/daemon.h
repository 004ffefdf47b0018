/* Finding holtd's binary, and starting it when no daemon answers. */
#pragma once

struct err;

/* Returns the path of holtd beside our own binary, or else "holtd" for a lookup in PATH. The caller
 * frees it. */
char *daemon_find(void);

/* Starts holtd in a new session, with its sockets and holtd.log in run_dir, and waits until it
 * reports that it is ready. ERR_EXISTS: another process has just started one there. */
int daemon_start(const char *run_dir, struct err *err);
