/* Random changes of files, as shell commands for a sandbox and in the model. */
#pragma once

#include "base/buf.h"
#include "kernel/host/property_model.h"

enum { CHANGE_TRIES = 30 };

static inline const char *change_word(char word[static 8])
{
    (void)snprintf(word, 8, "%03u", (unsigned)chance(1000));
    return word;
}

static inline bool is_file_or_none(const struct node *node)
{
    return node->kind == NODE_NONE || node->kind == NODE_FILE;
}

/* Each function does nothing and returns false if the change is impossible. */
static inline bool change_write(struct files *tree, size_t at, struct buf *script)
{
    char path[PATH_BYTES], word[8] = "";

    if (!files_has_place(tree, at) || !is_file_or_none(&tree->nodes[at]))
        return false;
    if (!one_in(8)) /* or empty */
        (void)change_word(word);
    CHECK(buf_printf(script, "echo -n '%s' > %s", word, node_path(at, path)) == 0);
    if (tree->nodes[at].kind == NODE_NONE)
        files_make(tree, at, NODE_FILE, word);
    else
        files_change(tree, at, tree->nodes[at].mode, word);
    return true;
}

static inline bool change_append(struct files *tree, size_t at, struct buf *script)
{
    char path[PATH_BYTES], word[8], text[2 * TEXT_MAX];
    const struct node *node = &tree->nodes[at];

    if (node->kind != NODE_FILE || strlen(node->text) > TEXT_MAX - 8)
        return false;
    (void)snprintf(text, sizeof(text), "%s%s", node->text, change_word(word));
    CHECK(buf_printf(script, "echo -n %s >> %s", word, node_path(at, path)) == 0);
    files_change(tree, at, node->mode, text);
    return true;
}

static inline bool change_remove(struct files *tree, size_t at, struct buf *script)
{
    char path[PATH_BYTES];

    if (node_is_place(at) || tree->nodes[at].kind == NODE_NONE)
        return false;
    CHECK(buf_printf(script, "rm -r %s", node_path(at, path)) == 0);
    files_remove(tree, at);
    return true;
}

static inline bool change_make_dir(struct files *tree, size_t at, struct buf *script)
{
    char path[PATH_BYTES];

    if (!files_has_place(tree, at) || !node_can_have_children(at) ||
        tree->nodes[at].kind != NODE_NONE)
        return false;
    CHECK(buf_printf(script, "mkdir %s", node_path(at, path)) == 0);
    files_make(tree, at, NODE_DIR, "");
    return true;
}

static inline bool change_mode(struct files *tree, size_t at, struct buf *script)
{
    /* All modes let the owner write: zfs-fuse treats a sandbox's root as an ordinary user. */
    static const unsigned modes[] = { 0644, 0600, 0755, 0666, 0711, 0700, 0755, 0751 };
    struct node *node = &tree->nodes[at];
    unsigned mode = modes[(node->kind == NODE_DIR ? 4 : 0) + chance(4)];
    char path[PATH_BYTES];

    if (node->kind != NODE_FILE && node->kind != NODE_DIR)
        return false;
    CHECK(buf_printf(script, "chmod %o %s", mode, node_path(at, path)) == 0);
    files_change(tree, at, mode, node->text);
    return true;
}

/* For overlayfs, moving a directory of the template is a copy, which splits hard links. */
static inline bool can_move(const struct files *tree, size_t from, size_t to)
{
    const struct node *a = &tree->nodes[from], *b = &tree->nodes[to];

    if (a->kind == NODE_NONE || node_is_place(from) || !files_has_place(tree, to) ||
        node_is_below(to, from) || node_is_below(from, to))
        return false;
    if (a->kind == NODE_DIR)
        return b->kind == NODE_NONE && node_can_have_children(to) && !files_has_links(tree, from) &&
               files_fits(tree, from, to);
    return b->kind == NODE_NONE || (b->kind != NODE_DIR && a->inode != b->inode);
}

static inline bool change_move(struct files *tree, size_t at, struct buf *script)
{
    size_t to = chance(NODES);
    char path[PATH_BYTES], new_path[PATH_BYTES];

    if (!can_move(tree, at, to))
        return false;
    CHECK(buf_printf(script, "mv -f %s %s", node_path(at, path), node_path(to, new_path)) == 0);
    files_move(tree, at, to);
    return true;
}

static inline bool change_link(struct files *tree, size_t at, struct buf *script)
{
    size_t to = chance(NODES);
    char path[PATH_BYTES], new_path[PATH_BYTES];

    if (tree->nodes[at].kind != NODE_FILE || !files_has_place(tree, to) ||
        tree->nodes[to].kind != NODE_NONE)
        return false;
    CHECK(buf_printf(script, "ln %s %s", node_path(at, path), node_path(to, new_path)) == 0);
    tree->nodes[to] = tree->nodes[at];
    return true;
}

static inline bool change_symlink(struct files *tree, size_t at, struct buf *script)
{
    char path[PATH_BYTES], word[8];

    if (!files_has_place(tree, at) || tree->nodes[at].kind != NODE_NONE)
        return false;
    CHECK(buf_printf(script, "ln -s %s %s", change_word(word), node_path(at, path)) == 0);
    files_make(tree, at, NODE_LINK, word);
    return true;
}

/* Usually picks a node that exists. */
static inline size_t change_place(const struct files *tree)
{
    size_t at = chance(NODES);

    for (int i = 0; i < CHANGE_TRIES && tree->nodes[at].kind == NODE_NONE && !one_in(8); i++)
        at = chance(NODES);
    return at;
}

/* Adds one possible change. */
static inline void change_any(struct files *tree, struct buf *script)
{
    static bool (*const changes[])(struct files * tree, size_t at, struct buf * script) = {
        change_write, change_write, change_write, change_append,   change_remove, change_make_dir,
        change_mode,  change_move,  change_move,  change_make_dir, change_link,   change_symlink,
    };

    for (int i = 0; i < CHANGE_TRIES; i++)
        if (changes[chance(ARRAY_SIZE(changes))](tree, change_place(tree), script))
            return;
    CHECK(buf_add_str(script, "true") == 0);
}
