/* The state of holt-view, and one request of the kernel. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "view/rules.h"
#include "viewfs/abi.h"
#include "viewfs/denial.h"
#include "viewfs/node.h"

enum {
    WRITE_MAX = 128 << 10, /* bytes of one write request */
    REQUEST_MAX = WRITE_MAX + 4096,
    REPLY_MAX = WRITE_MAX,
    WORKERS = 2,
};

struct viewfs {
    int fuse_fd;
    struct tree tree;
    /* Requests about names read it; a change of the rules and a rename write it. So the rules and
     * the path of every node stay as they are during a request. */
    pthread_rwlock_t names;
    struct view_rules *rules;
    uint64_t stamp; /* changes with the rules, and with the paths of nodes */
    bool has_passthrough, has_epoch;
    struct lock handles_lock;
    struct handle *handles; /* of files */
    size_t handle_count;
    struct denials denials;
    atomic_int control_fd; /* -1: holtd is not connected */
};

struct handle {
    struct handle *next, *previous;
    struct node *node; /* held */
    int fd;            /* opened when it is needed; -1 */
    int access;        /* O_ACCMODE */
    uint32_t pid;      /* of the process that opened it */
    struct lock lock;
    /* Of directories: what getdents64 has returned and the kernel has not taken yet. */
    char *entries;
    size_t entries_len, entries_at;
    uint64_t next_offset;
};

struct call {
    struct viewfs *fs;
    int dev_fd;
    const struct fuse_in_header *in;
    const char *body;
    size_t body_len;
    struct node *node; /* in->nodeid */
    /* The reply, with room for REPLY_MAX bytes. */
    char *reply;
    size_t reply_len;
};

/* What a handler returns beside 0 and -errno. */
enum { CALL_SILENT = 1 };

/* Returns the structure that a request begins with; NULL if it is shorter. */
const void *call_body(const struct call *call, size_t size);

/* Returns the index-th name behind `size` bytes; NULL if there is none or it is no name. */
const char *call_name(const struct call *call, size_t size, unsigned index);

/* Returns room for a structure in the reply, zeroed. */
void *call_reply(struct call *call, size_t size);

/* --- level.c ---------------------------------------------------------------------------------- */

/* Returns what the rules say about a node, about a name in one, or about a path. */
struct view_decision node_decide(struct viewfs *fs, struct node *node);
struct view_decision name_decide(struct viewfs *fs, struct node *parent, const char *name,
                                 bool is_directory);

/* Returns whether every path below a directory can be written. */
bool node_is_free_below(struct viewfs *fs, struct node *node);

/* Fails with -ENOENT or -EACCES, and notes the refusal, if the node or name has a lower level. A
 * name without a level is refused with -EACCES, as what it stands for is being created. */
int call_need(const struct call *call, enum view_level level);
int call_need_name(const struct call *call, struct node *parent, const char *name,
                   enum view_level level);

/* Fails with -EACCES unless every path in this directory can be written, there and below another
 * name. */
int call_need_below(const struct call *call, struct node *node, struct node *to_parent,
                    const char *to_name);

/* --- attributes and names: op_attr.c ---------------------------------------------------------- */

struct stat;
void attr_fill(const struct viewfs *fs, const struct node *node, struct view_decision decision,
               const struct stat *st, struct fuse_attr *ret);
uint64_t attr_seconds(const struct viewfs *fs, const struct node *node, const struct stat *st);

/* Writes the reply about a name: its node, with one more lookup, and attributes. */
int entry_fill(struct call *call, struct node *parent, const char *name, const struct stat *st,
               struct view_decision decision, struct fuse_entry_out *ret);
void entry_fill_node(struct call *call, const struct node *node, const struct stat *st,
                     struct view_decision decision, struct fuse_entry_out *ret);

int op_lookup(struct call *call);
int op_getattr(struct call *call);
int op_setattr(struct call *call);
int op_readlink(struct call *call);
int op_statfs(struct call *call);
int op_access(struct call *call);

/* --- op_xattr.c ------------------------------------------------------------------------------- */

int op_getxattr(struct call *call);
int op_listxattr(struct call *call);
int op_setxattr(struct call *call);
int op_removexattr(struct call *call);

/* --- op_name.c -------------------------------------------------------------------------------- */

/* Makes files belong to the caller while it is in effect. */
void owner_begin(const struct call *call);
void owner_end(void);

int op_mknod(struct call *call);
int op_mkdir(struct call *call);
int op_symlink(struct call *call);
int op_link(struct call *call);
int op_unlink(struct call *call);
int op_rmdir(struct call *call);
int op_rename(struct call *call);
int op_rename2(struct call *call);

/* --- op_dir.c --------------------------------------------------------------------------------- */

int op_opendir(struct call *call);
int op_readdir(struct call *call);
int op_readdirplus(struct call *call);
int op_releasedir(struct call *call);

/* --- op_file.c -------------------------------------------------------------------------------- */

int op_open(struct call *call);
int op_create(struct call *call);
int op_tmpfile(struct call *call);
int op_release(struct call *call);

/* Returns the file of an open handle, opened as the handle was, or -errno. */
int handle_fd(struct viewfs *fs, struct handle *handle);
struct handle *handle_from_id(uint64_t id);

/* The list of open files. */
void handles_add(struct viewfs *fs, struct handle *handle);
void handles_remove(struct viewfs *fs, struct handle *handle);

/* --- op_data.c -------------------------------------------------------------------------------- */

int op_read(struct call *call);
int op_write(struct call *call);
int op_flush(struct call *call);
int op_fsync(struct call *call);
int op_fallocate(struct call *call);
int op_lseek(struct call *call);
int op_copy_file_range(struct call *call);

/* --- loop.c ----------------------------------------------------------------------------------- */

/* Answers requests that come from dev_fd until the mount is gone. */
void viewfs_serve(struct viewfs *fs, int dev_fd);

/* Makes the kernel ask for the attributes of a node again. */
void notify_attributes(const struct viewfs *fs, const struct node *node);

/* Makes the kernel ask again for all that the rules decide. */
void notify_rules(struct viewfs *fs);

/* --- control.c -------------------------------------------------------------------------------- */

/* Handles one message of holtd. */
int control_receive(struct viewfs *fs, int fd);

/* Tells holtd that the mount is gone. */
void control_say_unmounted(struct viewfs *fs);

/* Handles messages as long as the process lives. */
void control_run(struct viewfs *fs, int control_fd, int listen_fd) __attribute__((noreturn));

/* --- confine.c -------------------------------------------------------------------------------- */

/* Leaves the process without a file system, without most capabilities and most system calls. */
int viewfs_confine(void);
