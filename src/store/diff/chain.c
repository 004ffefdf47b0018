// SPDX-License-Identifier: Apache-2.0
/* The path to the current directory, of which the last part is open. Opening each directory from
 * the top would cost its depth, and a hostile tree is ten thousand directories deep; keeping the
 * whole path open would cost as many descriptors. */
#include <string.h>

#include "store/diff/diff_internal.h"

static void chain_drop_first(struct diff_chain *chain)
{
    diff_open_done(&chain->opens[0]);
    chain->count--;
    memmove(&chain->dirs[0], &chain->dirs[1], chain->count * sizeof(chain->dirs[0]));
    memmove(&chain->opens[0], &chain->opens[1], chain->count * sizeof(chain->opens[0]));
}

static void chain_drop_last(struct diff_chain *chain)
{
    diff_open_done(&chain->opens[--chain->count]);
}

/* Opens a directory, relative to the last one of the chain if that is its parent. */
static int chain_add(struct diff_chain *chain, const struct diff_dir *dir)
{
    bool is_next = chain->count > 0 && chain->dirs[chain->count - 1] == dir->parent;
    struct diff_open open;
    int r = diff_dir_open(
        dir, is_next && !dir->is_tree_root ? &chain->opens[chain->count - 1] : NULL, &open);

    if (r < 0)
        return r;
    if (chain->count == DIFF_CHAIN_MAX)
        chain_drop_first(chain);
    chain->dirs[chain->count] = dir;
    chain->opens[chain->count++] = open;
    return 0;
}

/* Opens as many parents of dir as fit: the walk returns to them. */
static int chain_refill(struct diff_chain *chain, const struct diff_dir *dir)
{
    const struct diff_dir *above[DIFF_CHAIN_MAX - 1];
    size_t count = 0;
    int r = 0;

    for (; !dir->is_tree_root && count < DIFF_CHAIN_MAX - 1; dir = dir->parent)
        above[count++] = dir->parent;
    while (r == 0 && count > 0)
        r = chain_add(chain, above[--count]);
    return r;
}

int diff_chain_enter(struct diff_chain *chain, const struct diff_dir *dir,
                     const struct diff_open **ret)
{
    int r = 0;

    /* The walk moves from a directory to one in it, or to one in any of its parents. */
    while (chain->count > 0 && chain->dirs[chain->count - 1] != dir->parent)
        chain_drop_last(chain);
    if (chain->count == 0)
        r = chain_refill(chain, dir);
    if (r == 0)
        r = chain_add(chain, dir);
    if (r == 0)
        *ret = &chain->opens[chain->count - 1];
    return r;
}

void diff_chain_done(struct diff_chain *chain)
{
    while (chain->count > 0)
        chain_drop_last(chain);
}
