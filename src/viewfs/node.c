// SPDX-License-Identifier: Apache-2.0
#include "viewfs/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/path.h"

enum { BUCKETS_FIRST = 1024, FD_NAME_BYTES = 16 };

int tree_init(struct tree *tree, int root_fd, int proc_fd, size_t fd_max)
{
    tree->buckets = calloc(BUCKETS_FIRST, sizeof(*tree->buckets));
    if (!tree->buckets)
        return -ENOMEM;
    tree->bucket_count = BUCKETS_FIRST;
    tree->root_fd = root_fd;
    tree->proc_fd = proc_fd;
    tree->fd_max = fd_max;
    lock_init(&tree->lock, LOCK_VIEWFS_NODES);
    tree->root = (struct node){
        .kind = S_IFDIR, .lookups = 1, .refs = 1, .pins = 1, .fd = root_fd, .generation = 1
    };
    tree->generation = 1;
    return 0;
}

struct node *node_from_id(struct tree *tree, uint64_t id)
{
    return id == 1 ? &tree->root
                   : (struct node *)(uintptr_t)id; // NOLINT(performance-no-int-to-ptr)
}

/* --- names ------------------------------------------------------------------------------------ */

static size_t name_hash(const struct node *parent, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ULL ^ parent->generation * 0x9e3779b97f4a7c15ULL;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ULL;
    return (size_t)(hash ^ hash >> 32);
}

static struct node **bucket_of(struct tree *tree, const struct node *parent, const char *name)
{
    return &tree->buckets[name_hash(parent, name) & (tree->bucket_count - 1)];
}

static void buckets_grow(struct tree *tree)
{
    const size_t old_count = tree->bucket_count;
    struct node **old = tree->buckets, **more = calloc(old_count * 2, sizeof(*more));

    if (!more) /* the chains get longer */
        return;
    tree->buckets = more;
    tree->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        for (struct node *node = old[i], *next; node; node = next) {
            struct node **bucket = bucket_of(tree, node->parent, node->name);

            next = node->hash_next;
            node->hash_next = *bucket;
            *bucket = node;
        }
    }
    free(old);
}

static struct node *name_find(struct tree *tree, const struct node *parent, const char *name)
{
    struct node *node = *bucket_of(tree, parent, name);

    while (node && (node->parent != parent || strcmp(node->name, name) != 0))
        node = node->hash_next;
    return node;
}

static void name_insert(struct tree *tree, struct node *node)
{
    struct node **bucket;

    if (tree->count > tree->bucket_count)
        buckets_grow(tree);
    bucket = bucket_of(tree, node->parent, node->name);
    node->hash_next = *bucket;
    *bucket = node;
}

static void name_unlink(struct tree *tree, struct node *node)
{
    struct node **slot = bucket_of(tree, node->parent, node->name);

    while (*slot != node)
        slot = &(*slot)->hash_next;
    *slot = node->hash_next;
    node->hash_next = NULL;
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Only descriptors of directories that nobody uses are in the list. */
static void fd_list_remove(struct tree *tree, struct node *node)
{
    if (node->older)
        node->older->newer = node->newer;
    else
        tree->oldest = node->newer;
    if (node->newer)
        node->newer->older = node->older;
    else
        tree->newest = node->older;
    node->older = node->newer = NULL;
}

static void fd_list_add(struct tree *tree, struct node *node)
{
    node->older = tree->newest;
    node->newer = NULL;
    if (tree->newest)
        tree->newest->newer = node;
    else
        tree->oldest = node;
    tree->newest = node;
}

static bool fd_is_listed(const struct tree *tree, const struct node *node)
{
    return node->older || tree->oldest == node;
}

static void node_close(struct tree *tree, struct node *node)
{
    (void)close(node->fd);
    node->fd = -1;
    tree->fd_count--;
}

/* Makes room for one more descriptor. */
static void fds_shrink(struct tree *tree)
{
    while (tree->fd_count >= tree->fd_max && tree->oldest) {
        struct node *node = tree->oldest;

        fd_list_remove(tree, node);
        node_close(tree, node);
    }
}

static void node_pin(struct tree *tree, struct node *node)
{
    if (node->pins++ == 0 && node->fd >= 0 && fd_is_listed(tree, node))
        fd_list_remove(tree, node);
}

static void node_unpin(struct tree *tree, struct node *node)
{
    if (--node->pins > 0 || node->fd < 0)
        return;
    if (S_ISDIR(node->kind) && node->lookups > 0)
        fd_list_add(tree, node);
    else
        node_close(tree, node);
}

/* The tree is locked; the parents are opened as far as they are not. */
static int node_open(struct tree *tree, struct node *node)
{
    struct node *todo = node;
    int fd = -ESTALE;

    if (node->fd >= 0)
        return node->fd;
    if (!node->name)
        return -ESTALE;
    do { /* from the lowest directory that is open down to the node */
        todo = node;
        while (todo->parent->fd < 0) {
            todo = todo->parent;
            if (!todo->name)
                return -ESTALE;
        }
        node_pin(tree, todo->parent);
        fds_shrink(tree);
        fd = open_no_links(todo->parent->fd, todo->name,
                           O_PATH | (S_ISDIR(todo->kind) ? O_DIRECTORY : 0), 0);
        if (fd >= 0) {
            todo->fd = fd;
            tree->fd_count++;
            if (todo != node)
                fd_list_add(tree, todo);
        }
        node_unpin(tree, todo->parent);
    } while (fd >= 0 && todo != node);
    return fd;
}

int node_hold(struct tree *tree, struct node *node)
{
    lock_scope(&tree->lock);
    int fd;

    node_pin(tree, node);
    fd = node_open(tree, node);
    if (fd < 0)
        node->pins--;
    else
        node->refs++;
    return fd;
}

/* --- life ------------------------------------------------------------------------------------- */

static void node_free_chain(struct tree *tree, struct node *node)
{
    while (node != &tree->root && node->lookups == 0 && node->refs == 0) {
        struct node *parent = node->parent;

        if (node->fd >= 0) {
            if (fd_is_listed(tree, node))
                fd_list_remove(tree, node);
            node_close(tree, node);
        }
        if (node->name)
            name_unlink(tree, node);
        free(node->name);
        free(node);
        tree->count--;
        parent->refs--;
        node = parent;
    }
}

void node_release(struct tree *tree, struct node *node)
{
    lock_scope(&tree->lock);

    node_unpin(tree, node);
    node->refs--;
    node_free_chain(tree, node);
}

int node_reopen(struct tree *tree, struct node *node, int flags)
{
    char name[FD_NAME_BYTES];
    int fd;

    (void)snprintf(name, sizeof(name), "%d", node->fd);
    fd = openat(tree->proc_fd, name, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static struct node *node_new(struct tree *tree, struct node *parent, const char *name,
                             uint32_t kind)
{
    struct node *node = tree->count < NODES_MAX ? calloc(1, sizeof(*node)) : NULL;

    if (!node)
        return NULL;
    node->name = name ? strdup(name) : NULL;
    if (name && !node->name) {
        free(node);
        return NULL;
    }
    node->parent = parent;
    node->kind = kind;
    node->fd = -1;
    node->generation = ++tree->generation;
    parent->refs++;
    tree->count++;
    if (name)
        name_insert(tree, node);
    return node;
}

static void node_drop_name(struct tree *tree, struct node *node)
{
    name_unlink(tree, node);
    free(node->name);
    node->name = NULL;
}

struct node *node_look_up(struct tree *tree, struct node *parent, const char *name, uint32_t kind)
{
    lock_scope(&tree->lock);
    struct node *node = name_find(tree, parent, name);

    if (node && node->kind != kind) { /* nobody but this program changes names */
        node_drop_name(tree, node);
        node = NULL;
    }
    if (!node)
        node = node_new(tree, parent, name, kind);
    if (node)
        node->lookups++;
    return node;
}

struct node *node_make_nameless(struct tree *tree, struct node *parent, uint32_t kind)
{
    lock_scope(&tree->lock);
    struct node *node = node_new(tree, parent, NULL, kind);

    if (node) {
        node->lookups++;
        node->decision = (struct view_decision){ .level = VIEW_WRITE, .rule = -1 };
    }
    return node;
}

struct node *node_find(struct tree *tree, struct node *parent, const char *name)
{
    lock_scope(&tree->lock);
    struct node *node = name_find(tree, parent, name);

    if (node)
        node->refs++;
    return node;
}

void node_unref(struct tree *tree, struct node *node)
{
    lock_scope(&tree->lock);

    node->refs--;
    node_free_chain(tree, node);
}

void node_forget(struct tree *tree, struct node *node, uint64_t count)
{
    lock_scope(&tree->lock);

    if (node == &tree->root)
        return;
    node->lookups -= count < node->lookups ? count : node->lookups;
    node_free_chain(tree, node);
}

void node_remove_name(struct tree *tree, struct node *node)
{
    lock_scope(&tree->lock);

    if (!node->name)
        return;
    node_drop_name(tree, node);
    node->decision = (struct view_decision){ .level = VIEW_WRITE, .rule = -1 };
    node->pins++; /* with its last reference the node is closed */
}

void node_exchange_names(struct tree *tree, struct node *a, struct node *b)
{
    lock_scope(&tree->lock);
    struct node *parent = a->parent;
    char *name = a->name;

    name_unlink(tree, a);
    name_unlink(tree, b);
    a->parent = b->parent;
    a->name = b->name;
    b->parent = parent;
    b->name = name;
    name_insert(tree, a);
    name_insert(tree, b);
}

void node_add_lookup(struct tree *tree, struct node *node)
{
    lock_scope(&tree->lock);

    node->lookups++;
}

int node_hold_with(struct tree *tree, struct node *node, int fd)
{
    lock_scope(&tree->lock);

    node_pin(tree, node);
    node->refs++;
    if (node->fd >= 0) {
        (void)close(fd);
    } else {
        node->fd = fd;
        tree->fd_count++;
    }
    return node->fd;
}

void node_set_name(struct tree *tree, struct node *node, struct node *parent, const char *name)
{
    lock_scope(&tree->lock);
    struct node *old = node->parent;
    char *copy = strdup(name);

    if (!copy) { /* the next lookup makes another node */
        if (node->name)
            node_drop_name(tree, node);
        return;
    }
    if (node->name)
        node_drop_name(tree, node);
    else if (node->pins > 1)
        node->pins--;
    node->name = copy;
    node->parent = parent;
    parent->refs++;
    name_insert(tree, node);
    old->refs--;
    node_free_chain(tree, old);
}

bool node_path(struct tree *tree, const struct node *node, const char *name,
               char ret[NODE_PATH_SIZE])
{
    lock_scope(&tree->lock);
    size_t at = NODE_PATH_SIZE - 1;

    ret[at] = '\0';
    while (name || node != &tree->root) {
        const char *part = name ? name : node->name;
        const size_t len = part ? strlen(part) : 0;

        if (!part || at < len + 1)
            return false;
        at -= len;
        memcpy(ret + at, part, len);
        ret[--at] = '/';
        if (name)
            name = NULL;
        else
            node = node->parent;
    }
    if (!ret[at])
        ret[--at] = '/';
    memmove(ret, ret + at, NODE_PATH_SIZE - at);
    return true;
}

void tree_each(struct tree *tree, void (*each)(const struct node *node, void *context),
               void *context)
{
    lock_scope(&tree->lock);

    each(&tree->root, context);
    for (size_t i = 0; i < tree->bucket_count; i++)
        for (const struct node *node = tree->buckets[i]; node; node = node->hash_next)
            each(node, context);
}
