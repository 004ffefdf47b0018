/* The audit log, a tamper-evident record of operations: state/audit.jsonl, one JSON object per
 * line, append-only. Each line has "seq", "time" (RFC 3339, UTC, ms), "event", "sandbox" (if it
 * concerns one), further fields, "prev" (the "hash" of the line before; 64 zeros for the first) and
 * last "hash": SHA-256 in hex of the line without its hash member. A line may begin with blanks,
 * which are part of it. A line has at most 64 KiB. docs/audit.md describes the format for readers.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct audit;
struct err;

/* Opens or creates the file and reads its last line to continue from. An incomplete last line
 * (after a crash) is moved to audit.torn, and the log records that as an event audit.torn. A
 * changed last line is ERR_INTERNAL. There must be only one struct audit for a file. */
int audit_open(int state_fd, struct audit **ret, struct err *err);

/* Closes the log. Accepts NULL. */
void audit_close(struct audit *audit);

/* Appends an event; sandbox and details (an object, taken) may be NULL. Thread-safe. The operation
 * has happened already, so the caller only reports an error: ERR_INVALID when a detail has the name
 * of a field above, ERR_EXHAUSTED when the line would be too long. The line is on disk when this
 * returns 0. On any other error than that of the flush nothing was added; later calls still work.
 */
int audit_add(struct audit *audit, const char *event, const char *sandbox, json_t *details,
              struct err *err);

/* Does the same without waiting for the disk: the line is there with the next audit_add. For what
 * was observed, where nobody waits for the proof. */
int audit_note(struct audit *audit, const char *event, const char *sandbox, json_t *details,
               struct err *err);

/* Reads the log from its beginning, and calls `each` for every line about the sandbox (NULL: all);
 * a result other than 0 stops and is returned. The hash chain is checked in any case: ERR_INTERNAL
 * names the first bad line; *ret_lines is the number of lines. ERR_NOT_FOUND when there is no file.
 * It needs no struct audit and can run at the same time as audit_add. */
typedef int (*audit_fn)(const char *line, void *context);
int audit_read(int state_fd, const char *sandbox, audit_fn each, void *context, uint64_t *ret_lines,
               struct err *err);
