/* Compares a diff with the model. */
#pragma once

#include "kernel/host/property_node.h"
#include "store/diff/diff.h"

struct difference {
    const struct files *old, *new;
    char said[NODES];    /* the diff's letter for a path: A, M, D, or 0 */
    bool is_from[NODES]; /* the path that it was renamed from */
    bool is_to[NODES];
};

static inline void difference_set(struct difference *difference, size_t node, char kind)
{
    char path[PATH_BYTES];

    CHECK(!difference->said[node], "(%s is named twice)", node_path(node, path));
    difference->said[node] = kind;
}

static inline int difference_add(const struct diff_entry *entry, void *context)
{
    struct difference *difference = context;
    size_t node = node_find(entry->path), from;

    CHECK(node < NODES, "(the diff says '%c %s')", (char)entry->kind, entry->path);
    if (entry->kind != DIFF_RENAMED) {
        difference_set(difference, node, (char)entry->kind);
        return 0;
    }
    from = node_find(entry->old_path);
    CHECK(from < NODES, "(the diff says '%s' is from '%s')", entry->path, entry->old_path);
    CHECK(node_is_alike(&difference->old->nodes[from], &difference->new->nodes[node]) &&
              node_can_be_renamed(&difference->new->nodes[node]),
          "(the diff says '%s' is from '%s')", entry->path, entry->old_path);
    difference_set(difference, from, DIFF_DELETED);
    difference_set(difference, node, DIFF_ADDED);
    difference->is_from[from] = difference->is_to[node] = true;
    return 0;
}

/* Checks that the diff reports every possible rename. */
static inline void difference_check_renames(const struct difference *difference)
{
    char path[PATH_BYTES], new_path[PATH_BYTES];

    for (size_t i = 0; i < NODES; i++) {
        if (difference->said[i] != DIFF_DELETED || difference->is_from[i] ||
            !node_can_be_renamed(&difference->old->nodes[i]))
            continue;
        for (size_t j = 0; j < NODES; j++)
            CHECK(difference->said[j] != DIFF_ADDED || difference->is_to[j] ||
                      !node_is_alike(&difference->old->nodes[i], &difference->new->nodes[j]),
                  "(the diff does not say that '%s' became '%s')", node_path(i, path),
                  node_path(j, new_path));
    }
}

static inline void difference_check(const struct difference *difference)
{
    char path[PATH_BYTES];

    for (size_t i = 0; i < NODES; i++) {
        char wanted = files_difference(difference->old, difference->new, i);

        CHECK(difference->said[i] == wanted, "(the diff says '%c %s', not '%c')",
              difference->said[i] ? difference->said[i] : '-', node_path(i, path),
              wanted ? wanted : '-');
    }
    difference_check_renames(difference);
}
