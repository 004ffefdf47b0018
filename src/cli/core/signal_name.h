/* Signals as people write them. */
#pragma once

/* "TERM", "SIGTERM", "term" or "15": 0, or -EINVAL. */
int signal_parse(const char *text, int *ret);

/* "SIGTERM", or "signal 64" for one without a name of its own. */
enum { SIGNAL_TEXT_SIZE = 24 };
void signal_format(int number, char ret[SIGNAL_TEXT_SIZE]);
