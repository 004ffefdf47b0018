/* Telling whoever started the daemon that it is ready. */
#pragma once

/* Says READY=1 to systemd, if it is there and wants to know. */
void notify_systemd(void);

/* Writes one line to the --ready-fd descriptor, if there is one (not -1), and closes it: "ready",
 * or "error: " and the reason. */
void notify_ready(int fd);
void notify_error(int fd, const char *reason);
