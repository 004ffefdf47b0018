/* Names of signals. */
#pragma once

/* Parses "TERM", "SIGTERM", "term" or "15". Returns 0 or -EINVAL. */
int signal_parse(const char *text, int *ret);

/* Formats "SIGTERM", or "signal 64" if the signal has no name. */
enum { SIGNAL_TEXT_SIZE = 24 };
void signal_format(int number, char ret[SIGNAL_TEXT_SIZE]);
