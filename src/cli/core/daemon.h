/* Finding holtd's binary, and starting it when no daemon answers. */
#pragma once

struct err;

/* The path of holtd beside our own binary, else "holtd", which is to be looked up in PATH. The
 * caller frees it. */
char *daemon_find(void);

/* Starts holtd in a session of its own, with its sockets and holtd.log in run_dir, and waits until
 * it says that it is ready. ERR_EXISTS when another has just been started there. */
int daemon_start(const char *run_dir, struct err *err);
