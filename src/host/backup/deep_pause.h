/* Deep pauses: the files of a sandbox with their history go to object storage, and the local ones
 * are deleted. The row, the records of processes, the shells' state and the template stay here.
 *
 * The archive is sandboxes/ID/MARK, with a new mark for each pause; its description is
 *
 *   {"version":1, "sandbox":ID, "name", "template", "host"}
 *
 * where "template" is the word for the template that the bundle omits, or "". Templates that are
 * made of this machine's own /usr are omitted.
 *
 * What a killed daemon leaves: before the row says deep-paused, the sandbox is stopped and its
 * files are here; from then on they are in the archive, and local ones are leftovers. A resume ends
 * with a row that says stopped, after the files are on disk. In both cases the next start removes
 * what is too much (settle.h). */
#pragma once

struct err;
struct caller;
struct host;
struct sandbox;

/* Ends all processes, as a stop does, moves the files to the storage and frees their space. If it
 * fails after the processes have ended, the sandbox is stopped, with the reason. */
int sandbox_deep_pause(struct sandbox *sandbox, struct err *err);

/* Brings the files back and starts the sandbox. The caller has begun the operation, which this
 * ends. The sandbox stays deep-paused on failure, or is stopped if only its start failed. */
int sandbox_deep_resume(struct sandbox *sandbox, struct err *err);

/* Creates the sandbox with this id from an archive of the caller's owner that another host has
 * made. ERR_NOT_FOUND (SessionNotFound) if there is none. The caller owns one reference. */
int sandbox_move_in(struct host *host, const struct caller *caller, const char *id,
                    struct sandbox **ret, struct err *err);
