/* A record of what was done, that cannot be changed unnoticed: state/audit.jsonl, one JSON object a
 * line, append-only. Each has "seq", "time" (RFC 3339, UTC, ms), "event", "sandbox" (when it is
 * about one), further fields, "prev" (the "hash" of the line before; 64 zeros for the first) and
 * last "hash": SHA-256, as hex, of the line without its hash member. A line may begin with blanks,
 * which belong to it. At most 64 KiB each. docs/audit.md is for those who read it. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct audit;
struct err;

/* Opens or makes the file and reads its last line to go on from. An unfinished last line (the
 * machine crashed) is moved aside to audit.torn and said so in the log itself (audit.torn). A last
 * line that was changed is ERR_INTERNAL. One struct audit for a file at a time. */
int audit_open(int state_fd, struct audit **ret, struct err *err);

/* Accepts NULL. */
void audit_close(struct audit *audit);

/* Appends an event; sandbox and details (an object, taken; may be NULL) are optional. Thread-safe.
 * An error is for the caller to report: what it wanted to record has happened already. ERR_INVALID
 * when a detail has the name of a field above, ERR_EXHAUSTED when the line would be too long; on
 * any error nothing was added, and the next call goes on. */
int audit_add(struct audit *audit, const char *event, const char *sandbox, json_t *details,
              struct err *err);

/* Reads from the beginning. Each line goes to `each` (not 0: stop and return it) when it is about
 * the sandbox (NULL: all). The chain is checked in any case: ERR_INTERNAL names the first line that
 * does not fit; *ret_lines is how many there are. ERR_NOT_FOUND when there is no file. Opens the
 * file by itself, so it needs no struct audit and runs beside audit_add. */
typedef int (*audit_fn)(const char *line, void *context);
int audit_read(int state_fd, const char *sandbox, audit_fn each, void *context, uint64_t *ret_lines,
               struct err *err);
