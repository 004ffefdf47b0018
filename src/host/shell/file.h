/* Files of shells in the state directory:
 *
 *   shells/SANDBOX/NAME/process   "KIND MACHINE PROCESS\n": the last process of the shell
 *   shells/SANDBOX/NAME/now       the saved state: a script that begins with "# KIND\n"
 *   shells/SANDBOX/NAME/at-SNAP   the saved state at a snapshot
 *
 * Files are replaced by rename. Identical states are hard links to one file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/shell.h"

struct buf;
struct host;
struct process;
struct sandbox;

enum { SHELL_MACHINE_MAX = 64 };

struct shell_record {
    enum shell_kind kind;
    char machine[SHELL_MACHINE_MAX];
    uint32_t process;
};

/* Records the process of a shell. Errors are ignored: the shell works, but is not found after a
 * restart of the daemon. */
void shell_file_record(struct sandbox *sandbox, const char *name, enum shell_kind kind,
                       const struct process *process);

/* Reads the process of a shell. 0, or -ENOENT if there is none or it is malformed. */
int shell_file_find(struct sandbox *sandbox, const char *name, struct shell_record *ret);

/* Removes the present files of a shell; those of snapshots stay. */
void shell_file_remove(struct sandbox *sandbox, const char *name);

/* Read and write the saved state of a shell. 0 or -errno. */
int shell_file_read_now(struct sandbox *sandbox, const char *name, struct buf *ret);
int shell_file_write_now(struct sandbox *sandbox, const char *name, const struct buf *state);

/* Links the saved state to a snapshot, makes that of a snapshot the present one (-ENOENT: the
 * snapshot has no such shell), and removes it. */
int shell_file_link_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot);
int shell_file_restore_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot);
void shell_file_drop_snapshot(struct sandbox *sandbox, const char *name, const char *snapshot);

/* Calls `each` for the name of every shell that has files. */
typedef void shell_file_fn(void *context, const char *name);
void shell_file_each(struct sandbox *sandbox, shell_file_fn *each, void *context);

/* Removes all files of a sandbox. */
void shell_file_remove_all(struct sandbox *sandbox);
