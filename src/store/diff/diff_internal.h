/* Internals shared by the files of a diff, which has three steps: diff_walk lists the differences
 * in the order of paths; diff_find_renames pairs deleted with added files; diff.c reports the list
 * and only then reads the text of each file.
 *
 * Files in a layer were written by a sandbox and may change at any time. Names are always resolved
 * below a descriptor without following links, and only regular files are read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "store/import/digest.h"
#include "store/volume/volume.h"

struct err;
struct volume_view;

enum {
    DIFF_CHAIN_MAX = 16,                             /* directories open at the same time */
    DIFF_LAYERS_MAX = 2 * (2 + TEMPLATE_LAYERS_MAX), /* layers of one tree in both views */
    DIFF_PATH_MAX = 256 << 10,                       /* bytes of one path */
    DIFF_LIST_MAX = 256 << 20,                       /* bytes of the whole list */
    DIFF_NAMES_MAX = 64 << 20,                       /* bytes of the names in one directory */
    DIFF_TEXT_MAX = 1 << 20,                         /* a larger file is not text */
    DIFF_PATCH_MAX = 16 << 20,                       /* bytes of the patch of one file */
    DIFF_CPU_MS_MAX = 60 * 1000,                     /* of all runs of diff(1) together */
};

enum diff_side { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

/* An arena: memory that is freed as a whole, up to a limit. */
struct diff_arena {
    struct diff_arena_block *blocks;
    size_t left_bytes;
};

/* Returns zeroed memory, or NULL if the limit is reached. size is at most a few KiB. */
void *diff_arena_take(struct diff_arena *arena, size_t size);
void diff_arena_done(struct diff_arena *arena);

/* One tree of both views. Layers are numbered from the top in both views, and a layer that both
 * have has one number; a set of layers is a bit mask of these numbers. */
struct diff_tree {
    const char *target;
    int fds[DIFF_LAYERS_MAX]; /* owned by the views */
    size_t layer_count;
    uint64_t layers[DIFF_SIDES];
    bool is_overlay; /* otherwise both are a single directory, used as it is */
};

/* A directory that exists in at least one of the views. */
struct diff_dir {
    struct diff_dir *next;   /* in the list of directories to enter */
    struct diff_dir *parent; /* NULL for "/" */
    const struct diff_tree *tree;
    uint64_t layers[DIFF_SIDES]; /* that it is merged from; none: absent in that view */
    struct diff_change *self;    /* change to name if the directory is empty; or NULL */
    struct diff_change *after;   /* the list entry before its contents */
    size_t path_len;             /* of its path in the sandbox */
    size_t inner_len;            /* of its path in the layer, with a slash before each name */
    unsigned depth;
    uint32_t targets;  /* bit mask of the trees mounted somewhere below */
    bool is_tree_root; /* its path in the layer is "" */
    char name[];
};

/* A path that differs, or may turn out to. The mode is 0 in a view that does not have it. */
struct diff_change {
    struct diff_change *next;
    const struct diff_dir *dir; /* directory that contains it; NULL for "/" */
    const struct diff_change *renamed_from;
    uint64_t sizes[DIFF_SIDES];
    uint64_t inode; /* of the added or deleted file */
    mode_t modes[DIFF_SIDES];
    uid_t uid; /* of that file, as the sandbox sees it */
    gid_t gid;
    unsigned char layers[DIFF_SIDES]; /* layer that has it */
    bool is_named[DIFF_SIDES];        /* reported: all but non-empty directories */
    char name[];
};

struct diff_list {
    struct diff_tree trees[VOLUME_TREES_MAX];
    size_t tree_count;
    uid_t owner_shifts[DIFF_SIDES];
    uint64_t taken_ms;  /* see diff_options */
    bool is_of_volumes; /* see diff_options */
    struct diff_arena arena;
    struct diff_change first; /* dummy head of the list */
};

/* A directory being compared: open in every layer that it is merged from. */
struct diff_open {
    uint64_t opened; /* layers that have a descriptor */
    uint64_t layers[DIFF_SIDES];
    uint64_t marked; /* layers in which files may be whiteouts */
    int fds[DIFF_LAYERS_MAX];
};

/* What a view has under a name. */
struct diff_found {
    bool exists;
    unsigned layer;
    uint64_t layers; /* of a directory: the layers that it is merged from */
    struct stat st;
};

/* layers.c: two views as sets of layers, by the rules of overlayfs. */
int diff_trees_init(struct diff_list *list, const struct volume_view *old,
                    const struct volume_view *new, struct err *err);
/* Opens the layers of a directory; an open parent avoids the path from the top. Layers that
 * vanished are omitted. Returns 0 or -errno; -EOPNOTSUPP for overlay features that are not
 * supported. */
int diff_dir_open(const struct diff_dir *dir, const struct diff_open *parent,
                  struct diff_open *ret);
void diff_open_done(struct diff_open *open);
int diff_lookup(const struct diff_dir *dir, const struct diff_open *open, const char *name,
                struct diff_found found[static DIFF_SIDES]);
/* Looks up the root of a tree, which hides what the surrounding tree has there. */
int diff_lookup_root(const struct diff_tree *tree, struct diff_found found[static DIFF_SIDES]);

/* chain.c: the path to the current directory, as far as it is open. */
struct diff_chain {
    const struct diff_dir *dirs[DIFF_CHAIN_MAX];
    struct diff_open opens[DIFF_CHAIN_MAX];
    size_t count;
};
/* Opens a directory; *ret is valid until the next call. Returns 0 or -errno. */
int diff_chain_enter(struct diff_chain *chain, const struct diff_dir *dir,
                     const struct diff_open **ret);
void diff_chain_done(struct diff_chain *chain);

/* path.c: paths of entries. */
/* Writes the path of name in dir, or with name NULL of dir itself. -ENOBUFS if the buffer is too
 * small. */
int diff_path(const struct diff_dir *dir, const char *name, struct buf *path);
/* Opens a path in a layer, however long it is. Returns a descriptor or -errno. */
int diff_path_open(const struct diff_dir *dir, const char *name, unsigned layer, int flags);
/* Sets an error about a path. Returns r, or the -errno of the error set. */
int diff_error(struct err *err, int r, const struct diff_dir *dir, const char *name);
/* Returns whether an error only means that a file was removed or replaced meanwhile. */
bool diff_is_gone(int r);

/* names.c: the names in a directory. */
struct diff_names {
    struct buf bytes; /* the names, each with its NUL */
    const char **list;
    size_t count;
};
#define DIFF_NAMES_INIT                                                                            \
    {                                                                                              \
        .bytes = BUF_INIT(DIFF_NAMES_MAX)                                                          \
    }
int diff_names_add(struct diff_names *names, const char *name, size_t len);
/* Adds the names of an open directory. Returns 0 or -errno, -ENOBUFS if there are too many. */
int diff_names_read(struct diff_names *names, int dir_fd);
/* Builds the list: in byte order, without duplicates. */
int diff_names_sort(struct diff_names *names);
void diff_names_done(struct diff_names *names);

/* walk.c: lists the differences. */
int diff_walk(struct diff_list *list, struct err *err);
/* Makes a directory; tree is that mounted there, or NULL. Returns NULL if the arena is full. */
struct diff_dir *diff_dir_new(struct diff_list *list, struct diff_dir *parent, const char *name,
                              const struct diff_tree *tree);
/* Returns the trees mounted below the child of that name, and the one mounted exactly there (or
 * NULL). */
uint32_t diff_child_targets(const struct diff_list *list, const struct diff_dir *dir,
                            const char *name, const struct diff_tree **ret_tree);
/* Lists the names that may differ in a directory. Returns 0 or -errno. */
int diff_dir_names(const struct diff_list *list, const struct diff_dir *dir,
                   const struct diff_open *open, struct diff_names *names);
/* Returns whether type, mode and owner are equal. */
bool diff_is_same_meta(const struct diff_list *list, const struct stat *old,
                       const struct stat *new);
/* Returns whether a file has certainly not changed, without reading it. */
bool diff_is_untouched(const struct diff_list *list, const struct stat *old,
                       const struct stat *new);
/* Returns whether two files, not both directories, are equal: 1, 0 or -errno. */
int diff_is_same(const struct diff_list *list, const struct diff_tree *tree,
                 const struct diff_open *open, const char *name,
                 const struct diff_found found[static DIFF_SIDES]);

/* content.c: contents of files and links. */
/* Opens a regular file, and nothing else, for reading. Returns a descriptor or -errno. */
int diff_content_open_at(const struct diff_tree *tree, int dir_fd, const char *name,
                         struct stat *ret_st);
int diff_content_open(const struct diff_change *change, enum diff_side side, struct stat *ret_st);
/* Returns 1 if two files of that size have equal contents, 0 if not, or -errno. */
int diff_content_same(int a_fd, int b_fd, uint64_t size);
/* Computes a digest of the contents. Charges the bytes read to the budget: -ENOBUFS if that is
 * used up. */
int diff_content_digest(int fd, uint64_t size, uint64_t *budget_bytes,
                        char ret_hex[static DIGEST_HEX_LEN + 1]);

/* rename.c: pairs each added file with an equal deleted one, whose own entry is dropped. */
int diff_find_renames(struct diff_list *list);

/* text.c: differences of text. */
struct diff_text {
    bool is_binary;
    uint64_t added_lines;
    uint64_t deleted_lines;
    struct buf patch;    /* empty if there is none */
    int64_t cpu_left_ms; /* for all remaining files */
};
#define DIFF_TEXT_INIT                                                                             \
    {                                                                                              \
        .patch = BUF_INIT(DIFF_PATCH_MAX), .cpu_left_ms = DIFF_CPU_MS_MAX                          \
    }
/* Reads and compares the contents of a file; path is its path in the sandbox. */
int diff_text_compare(const struct diff_change *change, const char *path, struct diff_text *text,
                      struct err *err);
void diff_text_done(struct diff_text *text);

/* command.c: runs diff(1) on two texts and appends the hunks. Returns 1, 0 if it did not finish
 * within its limits, or -errno. A megabyte can take many seconds and there may be many files, so
 * the time used is subtracted from cpu_left_ms, and nothing runs once that is used up. */
int diff_command_run(const struct buf *old, const struct buf *new, int64_t *cpu_left_ms,
                     struct buf *ret_hunks);
