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

/* The same line for what is no error. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As report, for a command line that cannot be right. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for errors of the rooms below; what can be done about one is a second line. */
int report_err(const struct err *err);
int report_holt_error(const struct holt_error *error);

/* From here on errors of the daemon are one line of JSON on stderr, {"code":"not_found", ...}. */
void report_in_json(void);

/* The exit status of a command that ended with this one: in the place of STATUS_HOLT comes the one
 * that base/err.h has for the kind of what was reported last. */
int report_exit_status(int status);

/* Names and reasons come from elsewhere; none of them may move the cursor or start a second line:
 * control characters become "?". */
void drop_controls(char *text);
