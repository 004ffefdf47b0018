/* A set of inode numbers: the files that one layer of an image has written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct inode_set {
    ino_t *slots; /* 0: free slot; no file has inode 0 */
    size_t used;
    size_t capacity; /* a power of two */
};

/* Adds an inode. Returns 0 or -ENOMEM. */
int inode_set_add(struct inode_set *set, ino_t inode);
bool inode_set_has(const struct inode_set *set, ino_t inode);
void inode_set_done(struct inode_set *set);
