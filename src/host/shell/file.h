/* What the daemon writes down of shells, below its state directory:
 *
 *   shells/SANDBOX/NAME/process   "KIND MACHINE PROCESS\n": which process it is, or was
 *   shells/SANDBOX/NAME/now       what its next process begins with: a script, "# KIND\n" first
 *   shells/SANDBOX/NAME/at-SNAP   the same as it was at a snapshot
 *
 * A file is written under another name and renamed. What is the same in several states is one file
 * with several names. */
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

/* What cannot be written is not there after a restart; the shell itself works. */
void shell_file_record(struct sandbox *sandbox, const char *name, enum shell_kind kind,
                       const struct process *process);

/* 0, or -ENOENT where there is none that can be read. */
int shell_file_find(struct sandbox *sandbox, const char *name, struct shell_record *ret);

/* The shell is gone; what snapshots have of it stays. */
void shell_file_forget(struct sandbox *sandbox, const char *name);

/* What the next process begins with: 0 or -errno. */
int shell_file_read_now(struct sandbox *sandbox, const char *name, struct buf *ret);
int shell_file_write_now(struct sandbox *sandbox, const char *name, const struct buf *state);

/* Names what is remembered now as that of a snapshot; takes it up again (-ENOENT: the snapshot has
 * no such shell); removes it. */
int shell_file_keep(struct sandbox *sandbox, const char *name, const char *snapshot);
int shell_file_return(struct sandbox *sandbox, const char *name, const char *snapshot);
void shell_file_drop(struct sandbox *sandbox, const char *name, const char *snapshot);

/* Each name that something is written of. */
typedef void shell_file_fn(void *context, const char *name);
void shell_file_each(struct sandbox *sandbox, shell_file_fn *each, void *context);

/* Everything of a sandbox. */
void shell_file_remove_all(struct sandbox *sandbox);
