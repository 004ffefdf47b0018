/* What the files of a diff share. It goes in three steps: diff_walk lists what differs, in order of
 * paths; diff_find_renames joins what went with what came; diff.c hands the list out, with the text
 * of each file read only then.
 *
 * Everything below a layer was written by a sandbox and may change at any moment. Names are only
 * ever resolved below a descriptor and through no link, and only regular files are read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "store/import/digest.h"
#include "store/template/template.h"

struct err;
struct volume_view;

enum {
    DIFF_CHAIN_MAX = 16,                             /* directories that are open at a time */
    DIFF_LAYERS_MAX = 2 * (2 + TEMPLATE_LAYERS_MAX), /* of one tree in both views */
    DIFF_PATH_MAX = 256 << 10,                       /* bytes of one path */
    DIFF_LIST_MAX = 256 << 20,                       /* bytes of all that is listed */
    DIFF_NAMES_MAX = 64 << 20,                       /* bytes of the names of one directory */
    DIFF_TEXT_MAX = 1 << 20,                         /* a longer file is not text */
    DIFF_PATCH_MAX = 16 << 20,                       /* bytes of the patch of one file */
    DIFF_CPU_MS_MAX = 60 * 1000,                     /* of diff(1), all together */
};

enum diff_side { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

/* Memory that is given back as a whole, up to a limit. */
struct diff_arena {
    struct diff_arena_block *blocks;
    size_t left_bytes;
};

/* Zeroed, or NULL when the limit is reached. At most a few KiB at a time. */
void *diff_arena_take(struct diff_arena *arena, size_t size);
void diff_arena_done(struct diff_arena *arena);

/* One tree of both views. Layers are numbered so that in either view the topmost has the lowest
 * number, and one that both have is there once; a set of layers is a mask of these numbers. */
struct diff_tree {
    const char *target;
    int fds[DIFF_LAYERS_MAX]; /* the view's */
    size_t layer_count;
    uint64_t layers[DIFF_SIDES];
    bool is_overlay; /* else both are one directory that is as it stands */
};

/* A directory that is in at least one of the views. */
struct diff_dir {
    struct diff_dir *next;   /* of those that the walk has yet to enter */
    struct diff_dir *parent; /* NULL: this is "/" */
    const struct diff_tree *tree;
    uint64_t layers[DIFF_SIDES]; /* it is merged from; none: a view does not have it */
    struct diff_change *self;    /* is named if the directory turns out to be empty; or NULL */
    struct diff_change *after;   /* what precedes its contents in the list */
    size_t path_len;             /* of its path in the sandbox */
    size_t inner_len;            /* of its path below the layer, with a slash before each name */
    unsigned depth;
    uint32_t targets;  /* trees that lie somewhere below, as a mask of their numbers */
    bool is_tree_root; /* its path below the layer is "" */
    char name[];
};

/* A path that differs, or may turn out to. A view that does not have it has mode 0 there. */
struct diff_change {
    struct diff_change *next;
    const struct diff_dir *dir; /* it is in; NULL: it is "/" */
    const struct diff_change *renamed_from;
    uint64_t sizes[DIFF_SIDES];
    uint64_t inode; /* of the file that was added or deleted */
    mode_t modes[DIFF_SIDES];
    uid_t uid; /* likewise, as the sandbox sees it */
    gid_t gid;
    unsigned char layers[DIFF_SIDES]; /* where it lies */
    bool is_named[DIFF_SIDES];        /* what is there is worth naming: all but full directories */
    char name[];
};

struct diff_list {
    struct diff_tree trees[TEMPLATE_TREES_MAX];
    size_t tree_count;
    uid_t owner_shifts[DIFF_SIDES];
    uint64_t taken_ms; /* as in diff_options */
    struct diff_arena arena;
    struct diff_change first; /* stands before the list */
};

/* A directory while it is compared: open in every layer that it is merged from. */
struct diff_open {
    uint64_t opened; /* layers that have an fd here */
    uint64_t layers[DIFF_SIDES];
    uint64_t marked; /* layers in which files may be whiteouts */
    int fds[DIFF_LAYERS_MAX];
};

/* What a view has under a name. */
struct diff_found {
    bool exists;
    unsigned layer;
    uint64_t layers; /* of a directory: what it is merged from */
    struct stat st;
};

/* diff_layers.c: two views as sets of layers, by the rules of overlayfs. */
int diff_trees_init(struct diff_list *list, const struct volume_view *old,
                    const struct volume_view *new, struct err *err);
/* Opens what there is of a directory; parent, if open, saves the way from the top. What vanished
 * is left out. 0 or -errno; -EOPNOTSUPP for what this does not understand. */
int diff_dir_open(const struct diff_dir *dir, const struct diff_open *parent,
                  struct diff_open *ret);
void diff_open_done(struct diff_open *open);
int diff_look_up(const struct diff_dir *dir, const struct diff_open *open, const char *name,
                 struct diff_found found[static DIFF_SIDES]);
/* The root of a tree, which covers whatever the tree around it has there. */
int diff_look_up_root(const struct diff_tree *tree, struct diff_found found[static DIFF_SIDES]);

/* diff_chain.c: the way down to the directory at hand, as far as it is open. */
struct diff_chain {
    const struct diff_dir *dirs[DIFF_CHAIN_MAX];
    struct diff_open opens[DIFF_CHAIN_MAX];
    size_t count;
};
/* Opens a directory and says where; until the next call. 0 or -errno. */
int diff_chain_enter(struct diff_chain *chain, const struct diff_dir *dir,
                     const struct diff_open **ret);
void diff_chain_done(struct diff_chain *chain);

/* diff_path.c: paths of what was found. */
/* Of change or, with name NULL, of dir itself. -ENOBUFS when the buffer is too small. */
int diff_path(const struct diff_dir *dir, const char *name, struct buf *path);
/* Opens what lies below a layer, however long its path is: a descriptor or -errno. */
int diff_path_open(const struct diff_dir *dir, const char *name, unsigned layer, int flags);
/* Says what failed about a path. Returns r, or the errno of a refusal. */
int diff_fail(struct err *err, int r, const struct diff_dir *dir, const char *name);
/* Whether a failure only says that somebody has removed or replaced a file meanwhile. */
bool diff_is_gone(int r);

/* diff_names.c: the names in a directory. */
struct diff_names {
    struct buf bytes; /* of the names, each with its NUL */
    const char **list;
    size_t count;
};
#define DIFF_NAMES_INIT                                                                            \
    {                                                                                              \
        .bytes = BUF_INIT(DIFF_NAMES_MAX)                                                          \
    }
int diff_names_add(struct diff_names *names, const char *name, size_t len);
/* Adds what an open directory has: 0 or -errno, -ENOBUFS when that is too much. */
int diff_names_read(struct diff_names *names, int dir_fd);
/* Makes the list: in byte order, each name once. */
int diff_names_sort(struct diff_names *names);
void diff_names_done(struct diff_names *names);

/* diff_walk.c */
int diff_walk(struct diff_list *list, struct err *err);

/* diff_content.c: contents of files and links. */
/* Opens a regular file, and nothing else, to read it: a descriptor or -errno. */
int diff_content_open_at(const struct diff_tree *tree, int dir_fd, const char *name,
                         struct stat *ret_st);
int diff_content_open(const struct diff_change *change, enum diff_side side, struct stat *ret_st);
/* 1 if two files of that size have equal contents, 0 if not, or -errno. */
int diff_content_same(int a_fd, int b_fd, uint64_t size);
/* Digests that are equal when contents are. Takes what it reads from the budget: -ENOBUFS when that
 * is used up. */
int diff_content_digest(int fd, uint64_t size, uint64_t *budget_bytes,
                        char ret_hex[static DIGEST_HEX_LEN + 1]);

/* diff_rename.c: joins each added file with a deleted one that it equals, whose own entry goes. */
int diff_find_renames(struct diff_list *list);

/* diff_text.c: what differs as text. */
struct diff_text {
    bool is_binary;
    uint64_t added_lines;
    uint64_t deleted_lines;
    struct buf patch;    /* empty where there is nothing to say */
    int64_t cpu_left_ms; /* for all that is still to be compared */
};
#define DIFF_TEXT_INIT                                                                             \
    {                                                                                              \
        .patch = BUF_INIT(DIFF_PATCH_MAX), .cpu_left_ms = DIFF_CPU_MS_MAX                          \
    }
/* Reads and compares the contents of a file; path is where it is in the sandbox. */
int diff_text_compare(const struct diff_change *change, const char *path, struct diff_text *text,
                      struct err *err);
void diff_text_done(struct diff_text *text);

/* diff_command.c: runs diff(1) on two texts and appends the hunks: 1, or 0 if it did not finish
 * within bounds, or -errno. A megabyte can keep it busy for many seconds, and there may be any
 * number of them: what it takes is taken from cpu_left_ms, and without any it is not run. */
int diff_command_run(const struct buf *old, const struct buf *new, int64_t *cpu_left_ms,
                     struct buf *ret_hunks);
