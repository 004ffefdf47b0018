/* The model of a sandbox: state, files and history as plain data; and a random number generator. */
#pragma once

#include "host/sandbox/sandbox.h"
#include "kernel/host/property_node.h"

enum { BOXES = 4, SNAPSHOTS = 40, WORD_BYTES = 24 };

struct snap {
    char name[WORD_BYTES];
    enum snapshot_kind kind;
    uint32_t turn;
    char parent[WORD_BYTES];
    struct files tree;
};

struct box {
    bool is_used; /* has a handle */
    bool is_gone; /* the handle of a destroyed sandbox */
    struct sandbox *handle;
    char id[SANDBOX_ID_MAX];
    char name[WORD_BYTES];
    unsigned age; /* larger is newer */
    enum sandbox_state state;
    uint32_t turns, snapshots_max;
    char base[WORD_BYTES];
    struct files tree;
    struct snap snaps[SNAPSHOTS];
    size_t snap_count;
};

/* The files of the template. */
static struct files template_tree;

static inline struct snap *box_find(struct box *box, const char *name)
{
    for (size_t i = 0; i < box->snap_count; i++)
        if (strcmp(box->snaps[i].name, name) == 0)
            return &box->snaps[i];
    return NULL;
}

/* Returns the files of a snapshot, of the template (""), or of now (NULL); NULL: no such
 * snapshot. */
static inline const struct files *box_tree(struct box *box, const char *snapshot)
{
    const struct snap *snap;

    if (!snapshot)
        return &box->tree;
    if (!*snapshot)
        return &template_tree;
    snap = box_find(box, snapshot);
    return snap ? &snap->tree : NULL;
}

static inline void box_add(struct box *box, const char *name, enum snapshot_kind kind)
{
    struct snap *snap = &box->snaps[box->snap_count++];

    CHECK(box->snap_count <= SNAPSHOTS);
    *snap = (struct snap){ .kind = kind, .tree = box->tree };
    (void)snprintf(snap->name, sizeof(snap->name), "%s", name);
    memcpy(snap->parent, box->base, sizeof(snap->parent));
    memcpy(box->base, snap->name, sizeof(box->base));
    if (kind == SNAPSHOT_TURN)
        snap->turn = ++box->turns;
}

/* Descendants of the snapshot get its parent. */
static inline void box_remove(struct box *box, struct snap *snap)
{
    char name[WORD_BYTES], parent[WORD_BYTES];
    size_t at = (size_t)(snap - box->snaps);

    memcpy(name, snap->name, sizeof(name));
    memcpy(parent, snap->parent, sizeof(parent));
    memmove(snap, snap + 1, (--box->snap_count - at) * sizeof(*snap));
    if (strcmp(box->base, name) == 0)
        memcpy(box->base, parent, sizeof(parent));
    for (size_t i = 0; i < box->snap_count; i++)
        if (strcmp(box->snaps[i].parent, name) == 0)
            memcpy(box->snaps[i].parent, parent, sizeof(parent));
}

static inline void box_prune(struct box *box)
{
    uint32_t unnamed = 0;
    size_t i = 0;

    for (size_t j = 0; j < box->snap_count; j++)
        unnamed += box->snaps[j].kind != SNAPSHOT_NAMED;
    while (box->snapshots_max > 0 && i < box->snap_count && unnamed > box->snapshots_max) {
        if (box->snaps[i].kind == SNAPSHOT_NAMED) {
            i++;
            continue;
        }
        box_remove(box, &box->snaps[i]);
        unnamed--;
    }
}

static inline void box_roll_back(struct box *box, struct snap *snap, bool wants_newer_pruned)
{
    size_t at = (size_t)(snap - box->snaps);

    box->tree = snap->tree;
    memcpy(box->base, snap->name, sizeof(box->base));
    while (wants_newer_pruned && box->snap_count > at + 1)
        box_remove(box, &box->snaps[at + 1]);
}

/* --- chance (splitmix64) --------------------------------------------------------------------- */

static uint64_t chance_state;

static inline uint64_t chance(uint64_t below)
{
    uint64_t x = chance_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

static inline bool one_in(uint64_t n)
{
    return chance(n) == 0;
}
