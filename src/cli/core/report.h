/* Messages of holt itself: one line on stderr, and the matching exit status. */
#pragma once

struct err;
struct holt_error;

enum {
    STATUS_OK = 0,
    STATUS_HOLT = 125,        /* holt refused or failed, as opposed to the command it runs */
    STATUS_SIGNAL = 128,      /* plus the number of the signal */
    STATUS_BROKEN_PIPE = 141, /* as of a tool that died of SIGPIPE */
};

/* Writes "holt: ..." as one line; control characters become "?". Returns STATUS_HOLT. */
int report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a notice that is not an error. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for an invalid command line. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a struct err; its remedy, if any, is a second line. */
int report_err(const struct err *err);
int report_holt_error(const struct holt_error *error);

/* From now on, errors of the daemon are printed as one line of JSON on stderr, {"code":"not_found",
 * ...}. */
void report_in_json(void);

/* Returns the final exit status of a command: STATUS_HOLT becomes the status that base/err.h has
 * for the kind of the last reported error. */
int report_exit_status(int status);
