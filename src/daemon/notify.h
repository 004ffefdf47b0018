/* Telling whoever started the daemon how it is: systemd, and a descriptor. */
#pragma once

#include <stdint.h>

/* Says something in the words of sd_notify(3), one "NAME=value" a line, if systemd is there and
 * wants to know. */
void notify_systemd(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How often systemd wants to hear WATCHDOG=1, in microseconds; 0: never. */
uint64_t notify_watchdog_us(void);

/* Writes one line to the --ready-fd descriptor, if there is one (not -1), and closes it: "ready",
 * or "error: " and the reason. */
void notify_ready(int fd);
void notify_error(int fd, const char *reason);
