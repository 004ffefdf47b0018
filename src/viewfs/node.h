/* What the kernel knows of the tree: a node for each name that it has looked up.
 *
 * A node stands for a name, not for a file: two hard links are two nodes, and each is judged by its
 * own path. The kernel counts its uses of a node (lookups) and forgets them; a node goes with the
 * last of them. Directories keep a descriptor while there are few enough; other files have one
 * while they are open or have no name any more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "view/rules.h"

enum {
    NODES_MAX = 2 << 20,
    NODE_PATH_SIZE = 4096,
};

struct node {
    struct node *parent; /* a reference; NULL for the root */
    struct node *hash_next;
    char *name; /* in the parent; NULL once it has none */
    uint64_t generation;
    uint64_t lookups; /* of the kernel */
    uint32_t refs;    /* children, handles and requests under way */
    uint32_t kind;    /* S_IFMT */
    int fd;           /* -1: none at present */
    uint32_t pins;    /* uses of fd that keep it open: handles, requests, and having no name */

    struct node *older, *newer; /* directories with a descriptor */

    /* What the rules say, valid while stamp is that of the tree. */
    uint64_t stamp;
    struct view_decision decision;
    bool is_free_below; /* all paths below can be written */

    uint32_t handles;
    uint32_t writers;
    int32_t backing; /* the kernel's number of the backing file while there are handles; 0: none */
};

struct tree {
    int root_fd;
    int proc_fd; /* /proc/PID/fd */
    struct lock lock;
    struct node root;
    struct node **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
    uint64_t generation;
    struct node *oldest, *newest;
    size_t fd_count, fd_max;
};

/* Prepares the tree of a mount. Takes both descriptors. */
int tree_init(struct tree *tree, int root_fd, int proc_fd, size_t fd_max);

static inline uint64_t node_id(const struct tree *tree, const struct node *node)
{
    return node == &tree->root ? 1 : (uint64_t)(uintptr_t)node;
}

/* Returns the node of a number that the kernel has from node_id. */
struct node *node_from_id(struct tree *tree, uint64_t id);

/* Returns the node of a name, with one more lookup; makes it if there is none, or if the name was
 * that of another kind of file. NULL beyond NODES_MAX or without memory. */
struct node *node_look_up(struct tree *tree, struct node *parent, const char *name, uint32_t kind);

/* Returns a node without a name and with one lookup, for a file that has none. */
struct node *node_make_nameless(struct tree *tree, struct node *parent, uint32_t kind);

/* Returns the node of a name, if the kernel knows it, with a reference. */
struct node *node_find(struct tree *tree, struct node *parent, const char *name);
void node_unref(struct tree *tree, struct node *node);

/* Drops lookups of the kernel, and perhaps the node. */
void node_forget(struct tree *tree, struct node *node, uint64_t count);

/* Opens the file of a node, O_PATH, until node_release. Returns a descriptor or -errno. Links are
 * not followed. */
int node_hold(struct tree *tree, struct node *node);
void node_release(struct tree *tree, struct node *node);

/* Opens the file of a held node again with these flags. Returns a descriptor or -errno. */
int node_reopen(struct tree *tree, struct node *node, int flags);

/* Holds a node whose file is open already; takes the descriptor and returns that of the node. */
int node_hold_with(struct tree *tree, struct node *node, int fd);

/* Takes the name from a node, which must be held: the hold stays for the node's life. A file that
 * lost its name, or has none yet, could be written, and so it can for as long as it is open. */
void node_remove_name(struct tree *tree, struct node *node);

void node_exchange_names(struct tree *tree, struct node *a, struct node *b);
void node_add_lookup(struct tree *tree, struct node *node);

/* Gives a node another name; no node has that. */
void node_set_name(struct tree *tree, struct node *node, struct node *parent, const char *name);

/* Writes the path of a node, or of a name in it (NULL: of itself). Returns false for one that has
 * none or is too long. */
bool node_path(struct tree *tree, const struct node *node, const char *name,
               char ret[NODE_PATH_SIZE]);

/* Calls each for every node; the tree is locked. */
void tree_each(struct tree *tree, void (*each)(const struct node *node, void *context),
               void *context);
