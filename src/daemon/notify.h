/* Reports the state of the daemon to systemd, and to a descriptor. */
#pragma once

#include <stdint.h>

/* Sends a message of sd_notify(3), one "NAME=value" per line, if systemd listens. */
void notify_systemd(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the interval in which systemd expects WATCHDOG=1, in microseconds; 0: none. */
uint64_t notify_watchdog_us(void);

/* Writes one line to the --ready-fd descriptor, if it is not -1, and closes it: "ready", or "error:
 * " and the reason. */
void notify_ready(int fd);
void notify_error(int fd, const char *reason);
