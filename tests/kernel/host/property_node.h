/* The model of a sandbox's files, as plain data.
 *
 * It is small: below each of two directories every name is a, b or c, three levels deep. Node 0
 * of a place is the directory itself, the children of node i are 3i+1 to 3i+3. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"

enum {
    NAMES = 3,          /* per directory */
    PLACE_NODES = 40,   /* 1 + 3 + 9 + 27 */
    PLACE_PARENTS = 13, /* nodes that may have children */
    NODES = 2 * PLACE_NODES,
    TEXT_MAX = 40,
    PATH_BYTES = 32,
};

enum node_kind { NODE_NONE, NODE_FILE, NODE_DIR, NODE_LINK };

struct node {
    enum node_kind kind;
    unsigned mode;
    unsigned inode;      /* hard links have the same number */
    bool is_inherited;   /* the inode is the template's, or a copy of it */
    char text[TEXT_MAX]; /* contents, or target of a symlink */
};

struct files {
    struct node nodes[NODES];
    unsigned last_inode;
};

/* The first directory comes from the template, the second from Holt. */
static const char *const places[] = { "/data", "/workspace" };

static inline size_t node_place(size_t node)
{
    return node / PLACE_NODES;
}

static inline bool node_is_place(size_t node)
{
    return node % PLACE_NODES == 0;
}

static inline size_t node_parent(size_t node)
{
    return node_place(node) * PLACE_NODES + (node % PLACE_NODES - 1) / NAMES;
}

static inline bool node_can_have_children(size_t node)
{
    return node % PLACE_NODES < PLACE_PARENTS;
}

static inline size_t node_child(size_t node, size_t which)
{
    return node_place(node) * PLACE_NODES + node % PLACE_NODES * NAMES + 1 + which;
}

static inline const char *node_path(size_t node, char path[static PATH_BYTES])
{
    char tail[PATH_BYTES] = "", longer[PATH_BYTES];

    for (; !node_is_place(node); node = node_parent(node)) {
        (void)snprintf(longer, sizeof(longer), "/%c%.24s",
                       (char)('a' + (node % PLACE_NODES - 1) % NAMES), tail);
        memcpy(tail, longer, sizeof(tail));
    }
    (void)snprintf(path, PATH_BYTES, "%s%.16s", places[node_place(node)], tail);
    return path;
}

/* Returns the node of a path, with or without leading slash; NODES if it is not in the model. */
static inline size_t node_find(const char *path)
{
    char mine[PATH_BYTES];

    for (size_t node = 0; node < NODES; node++)
        if (strcmp(node_path(node, mine) + (*path != '/'), path) == 0)
            return node;
    return NODES;
}

static inline bool files_is_empty_dir(const struct files *tree, size_t node)
{
    for (size_t i = 0; node_can_have_children(node) && i < NAMES; i++)
        if (tree->nodes[node_child(node, i)].kind != NODE_NONE)
            return false;
    return true;
}

/* Returns whether a file may be created there. */
static inline bool files_has_place(const struct files *tree, size_t node)
{
    return !node_is_place(node) && tree->nodes[node_parent(node)].kind == NODE_DIR;
}

static inline void files_make(struct files *tree, size_t node, enum node_kind kind,
                              const char *text)
{
    static const unsigned modes[] = { 0, 0644, 0755, 0777 };
    struct node *made = &tree->nodes[node];

    *made = (struct node){ .kind = kind, .mode = modes[kind], .inode = ++tree->last_inode };
    (void)snprintf(made->text, sizeof(made->text), "%s", text);
}

/* A change affects all hard links of a file. */
static inline void files_change(struct files *tree, size_t node, unsigned mode, const char *text)
{
    unsigned inode = tree->nodes[node].inode;
    char copy[TEXT_MAX]; /* text may point into the node */

    (void)snprintf(copy, sizeof(copy), "%.*s", TEXT_MAX - 1, text);
    for (size_t i = 0; i < NODES; i++) {
        if (tree->nodes[i].kind == NODE_NONE || tree->nodes[i].inode != inode)
            continue;
        tree->nodes[i].mode = mode;
        memcpy(tree->nodes[i].text, copy, sizeof(copy));
    }
}

static inline void files_remove(struct files *tree, size_t node)
{
    for (size_t i = 0; node_can_have_children(node) && i < NAMES; i++)
        files_remove(tree, node_child(node, i));
    tree->nodes[node] = (struct node){ .kind = NODE_NONE };
}

static inline bool files_has_links(const struct files *tree, size_t node)
{
    const struct node *it = &tree->nodes[node];

    for (size_t i = 0; it->kind == NODE_FILE && i < NODES; i++)
        if (i != node && tree->nodes[i].kind == NODE_FILE && tree->nodes[i].inode == it->inode)
            return true;
    for (size_t i = 0; node_can_have_children(node) && i < NAMES; i++)
        if (files_has_links(tree, node_child(node, i)))
            return true;
    return false;
}

/* Returns whether a subtree fits below a node. */
static inline bool files_fits(const struct files *tree, size_t from, size_t to)
{
    if (tree->nodes[from].kind == NODE_NONE || files_is_empty_dir(tree, from))
        return true;
    for (size_t i = 0; i < NAMES; i++) {
        if (tree->nodes[node_child(from, i)].kind == NODE_NONE)
            continue;
        if (!node_can_have_children(to) ||
            !files_fits(tree, node_child(from, i), node_child(to, i)))
            return false;
    }
    return true;
}

static inline bool node_is_below(size_t node, size_t above)
{
    while (node != above && !node_is_place(node))
        node = node_parent(node);
    return node == above;
}

static inline void files_move(struct files *tree, size_t from, size_t to)
{
    tree->nodes[to] = tree->nodes[from];
    tree->nodes[from] = (struct node){ .kind = NODE_NONE };
    for (size_t i = 0; node_can_have_children(from) && i < NAMES; i++)
        if (tree->nodes[node_child(from, i)].kind != NODE_NONE)
            files_move(tree, node_child(from, i), node_child(to, i));
}

static inline bool node_is_alike(const struct node *a, const struct node *b)
{
    return a->kind == b->kind && a->mode == b->mode && strcmp(a->text, b->text) == 0;
}

/* --- what a diff should say ------------------------------------------------------------------ */

/* Returns the letter of enum diff_kind for a node, or 0; a rename counts as a deletion and an
 * addition. */
static inline char files_difference(const struct files *old, const struct files *new, size_t node)
{
    const struct node *was = &old->nodes[node], *is = &new->nodes[node];
    bool is_old_named = was->kind != NODE_NONE, is_new_named = is->kind != NODE_NONE;

    if (was->kind == NODE_DIR && is->kind == NODE_DIR)
        return was->mode != is->mode ? 'M' : 0;
    if (node_is_alike(was, is))
        return 0;
    if (was->kind == NODE_DIR)
        is_old_named = files_is_empty_dir(old, node);
    if (is->kind == NODE_DIR)
        is_new_named = files_is_empty_dir(new, node);
    if (is_old_named && is_new_named)
        return 'M';
    return is_old_named ? 'D' : is_new_named ? 'A' : 0;
}

static inline bool node_can_be_renamed(const struct node *node)
{
    return node->kind == NODE_LINK || (node->kind == NODE_FILE && node->text[0]);
}
