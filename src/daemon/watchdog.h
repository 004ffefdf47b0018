/* WATCHDOG=1 for systemd, as long as the daemon does its work. */
#pragma once

struct err;
struct host;
struct watchdog;

/* Starts the thread, if systemd asks for it; otherwise *ret is NULL. The API is asked at the unix
 * socket in run_dir. */
int watchdog_start(struct host *host, const char *run_dir, struct watchdog **ret, struct err *err);

/* Accepts NULL. */
void watchdog_stop(struct watchdog *watchdog);
