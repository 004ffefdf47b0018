/* The watchdog: sends WATCHDOG=1 to systemd while the daemon works. */
#pragma once

struct err;
struct host;
struct watchdog;

/* Starts the thread if systemd asks for it; otherwise *ret is NULL. It checks the API at the unix
 * socket in run_dir. */
int watchdog_start(struct host *host, const char *run_dir, struct watchdog **ret, struct err *err);

/* Stops the thread. Accepts NULL. */
void watchdog_stop(struct watchdog *watchdog);
