/* What holt itself has to say: one line on stderr, and the exit status that goes with it. */
#pragma once

struct err;
struct holt_error;

enum {
    STATUS_OK = 0,
    STATUS_HOLT = 125,        /* holt refused or failed, as opposed to the command it runs */
    STATUS_SIGNAL = 128,      /* plus the number of the signal */
    STATUS_BROKEN_PIPE = 141, /* as a tool that SIGPIPE ended */
};

/* Writes "holt: ..." as one line, whatever bytes the text has. Returns STATUS_HOLT. */
int report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for errors of the rooms below. */
int report_err(const struct err *err);
int report_holt_error(const struct holt_error *error);

/* Names and reasons come from elsewhere; none of them may move the cursor or start a second line:
 * control characters become "?". */
void drop_controls(char *text);
