// SPDX-License-Identifier: Apache-2.0
/* Renames: an added and a deleted file that are equal. Files with the same inode number are paired
 * first, the others in the order of paths. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/diff/diff_internal.h"

enum { CANDIDATES_MAX = 10000 };

/* Limit of the bytes read to find renames. */
static const uint64_t READ_BYTES_MAX = UINT64_C(1) << 30;

struct candidate {
    struct diff_change *change;
    size_t order; /* position of its path */
    enum diff_side side;
    bool is_paired;
    char digest[DIGEST_HEX_LEN + 1]; /* "": not usable */
};

typedef int (*candidate_compare_fn)(const struct candidate *a, const struct candidate *b);

static bool is_candidate(const struct diff_change *change)
{
    enum diff_side side = change->is_named[DIFF_NEW] ? DIFF_NEW : DIFF_OLD;
    mode_t mode = change->modes[side];

    return change->is_named[DIFF_OLD] != change->is_named[DIFF_NEW] && change->sizes[side] > 0 &&
           (S_ISREG(mode) || S_ISLNK(mode));
}

static size_t candidates_count(const struct diff_list *list)
{
    size_t count = 0;

    for (const struct diff_change *change = list->first.next; change; change = change->next)
        count += is_candidate(change);
    return count;
}

static void candidates_collect(const struct diff_list *list, struct candidate *candidates)
{
    size_t count = 0;

    for (struct diff_change *change = list->first.next; change; change = change->next) {
        if (!is_candidate(change))
            continue;
        candidates[count] = (struct candidate){
            .change = change,
            .order = count,
            .side = change->is_named[DIFF_NEW] ? DIFF_NEW : DIFF_OLD,
        };
        count++;
    }
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int meta_compare(const struct candidate *a, const struct candidate *b)
{
    const struct diff_change *x = a->change, *y = b->change;
    int r = compare_numbers(x->sizes[a->side], y->sizes[b->side]);

    if (r == 0)
        r = compare_numbers(x->modes[a->side], y->modes[b->side]);
    if (r == 0)
        r = compare_numbers(x->uid, y->uid);
    return r ? r : compare_numbers(x->gid, y->gid);
}

static int content_compare(const struct candidate *a, const struct candidate *b)
{
    int r = meta_compare(a, b);

    return r ? r : strcmp(a->digest, b->digest);
}

static int inode_compare(const struct candidate *a, const struct candidate *b)
{
    int r = content_compare(a, b);

    return r ? r : compare_numbers(a->change->inode, b->change->inode);
}

/* Within a group: by side, then by path. */
static int group_compare(const struct candidate *a, const struct candidate *b)
{
    int r = compare_numbers(a->side, b->side);

    return r ? r : compare_numbers(a->order, b->order);
}

static int by_meta(const void *a, const void *b)
{
    int r = meta_compare(a, b);

    return r ? r : group_compare(a, b);
}

static int by_content(const void *a, const void *b)
{
    int r = content_compare(a, b);

    return r ? r : group_compare(a, b);
}

static int by_inode(const void *a, const void *b)
{
    int r = inode_compare(a, b);

    return r ? r : group_compare(a, b);
}

static size_t group_end(const struct candidate *candidates, size_t begin, size_t count,
                        candidate_compare_fn is_other)
{
    size_t end = begin + 1;

    while (end < count && is_other(&candidates[begin], &candidates[end]) == 0)
        end++;
    return end;
}

static int link_digest(const struct diff_change *change, enum diff_side side,
                       char ret_hex[static DIGEST_HEX_LEN + 1])
{
    cleanup_close int fd =
        diff_path_open(change->dir, change->name, change->layers[side], O_PATH | O_NOFOLLOW);
    char target[PATH_MAX];
    struct digest *digest;
    ssize_t len;
    int r;

    if (fd < 0)
        return fd;
    len = readlinkat(fd, "", target, sizeof(target));
    if (len < 0)
        return -errno;
    digest = digest_new();
    if (!digest)
        return -EIO;
    digest_add(digest, target, (size_t)len);
    r = digest_hex(digest, ret_hex);
    digest_free(digest);
    return r;
}

static int file_digest(const struct diff_change *change, enum diff_side side,
                       uint64_t *budget_bytes, char ret_hex[static DIGEST_HEX_LEN + 1])
{
    struct stat st;
    cleanup_close int fd = diff_content_open(change, side, &st);

    if (fd < 0)
        return fd;
    return diff_content_digest(fd, change->sizes[side], budget_bytes, ret_hex);
}

/* A file that cannot be read, or not within the budget, gets no digest and is not paired. */
static void candidate_digest(struct candidate *candidate, uint64_t *budget_bytes)
{
    const struct diff_change *change = candidate->change;
    enum diff_side side = candidate->side;
    int r;

    if (S_ISLNK(change->modes[side]))
        r = link_digest(change, side, candidate->digest);
    else
        r = file_digest(change, side, budget_bytes, candidate->digest);
    if (r < 0)
        candidate->digest[0] = '\0';
}

/* Reads only files that may have a counterpart. */
static void candidates_digest(struct candidate *candidates, size_t count)
{
    uint64_t budget_bytes = READ_BYTES_MAX;
    size_t end;

    qsort(candidates, count, sizeof(*candidates), by_meta);
    for (size_t begin = 0; begin < count; begin = end) {
        end = group_end(candidates, begin, count, meta_compare);
        if (candidates[begin].side == candidates[end - 1].side)
            continue;
        for (size_t i = begin; i < end; i++)
            candidate_digest(&candidates[i], &budget_bytes);
    }
}

/* In a group, deleted files precede added ones. */
static void group_pair(struct candidate *candidates, size_t begin, size_t end)
{
    size_t added = begin;

    if (candidates[begin].digest[0] == '\0')
        return;
    for (size_t deleted = begin; deleted < end; deleted++) {
        if (candidates[deleted].side != DIFF_OLD || candidates[deleted].is_paired)
            continue;
        while (added < end && (candidates[added].side != DIFF_NEW || candidates[added].is_paired))
            added++;
        if (added == end)
            return;
        candidates[added].change->renamed_from = candidates[deleted].change;
        candidates[deleted].change->is_named[DIFF_OLD] = false;
        candidates[added].is_paired = candidates[deleted].is_paired = true;
    }
}

static void candidates_pair(struct candidate *candidates, size_t count,
                            candidate_compare_fn is_other)
{
    size_t end;

    for (size_t begin = 0; begin < count; begin = end) {
        end = group_end(candidates, begin, count, is_other);
        group_pair(candidates, begin, end);
    }
}

int diff_find_renames(struct diff_list *list)
{
    cleanup_free struct candidate *candidates = NULL;
    size_t count = candidates_count(list);

    if (count == 0 || count > CANDIDATES_MAX)
        return 0;
    candidates = calloc(count, sizeof(*candidates));
    if (!candidates)
        return -ENOMEM;
    candidates_collect(list, candidates);
    candidates_digest(candidates, count);
    qsort(candidates, count, sizeof(*candidates), by_inode);
    candidates_pair(candidates, count, inode_compare);
    qsort(candidates, count, sizeof(*candidates), by_content);
    candidates_pair(candidates, count, content_compare);
    return 0;
}
