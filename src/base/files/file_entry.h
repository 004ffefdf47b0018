/* What is known of one file: how listings, copies and answers about files speak of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_type {
    ENTRY_NONE,
    ENTRY_FILE,
    ENTRY_DIRECTORY,
    ENTRY_LINK, /* a symbolic one */
    ENTRY_PIPE,
    ENTRY_SOCKET,
    ENTRY_CHARACTER_DEVICE,
    ENTRY_BLOCK_DEVICE,
    ENTRY_TYPES
};

enum { ENTRY_PATH_MAX = 4095 }; /* bytes of a path, and of what a link points to */

struct stat;

/* Texts are any bytes but NUL, never NULL; "" where there is nothing to say. */
struct file_entry {
    const char *path;
    enum entry_type type;
    uint32_t mode; /* permission bits, 07777 */
    uint32_t uid, gid;
    uint64_t size;
    uint64_t inode;
    uint32_t links;
    int64_t mtime_s;
    uint32_t mtime_ns;
    const char *target;    /* of a symbolic link */
    const char *same_as;   /* of a further name of a file: the path it had before in this tree */
    const char *user_name; /* as the sandbox itself knows them */
    const char *group_name;

    /* Details, where they were asked for. */
    enum entry_type end_type; /* of a link: what it leads to at last; ENTRY_NONE: nothing */
    uint32_t end_mode;
    const char *end_path; /* of that, without any link in it */
    const char *meta;     /* names and values in turn, each with its NUL; NULL: not asked for */
    size_t meta_len;
};

/* All that stat says; path is kept, not copied. */
struct file_entry entry_of(const char *path, const struct stat *st);

/* "file", "directory", "link", "pipe", "socket", "character-device", "block-device"; "" for none.
 */
const char *entry_type_name(enum entry_type type);

/* The other way round: ENTRY_NONE for what is none of them. */
enum entry_type entry_type_find(const char *name);

/* Whether a path names something below where it starts: not empty, not absolute, no empty part, no
 * "." and no "..". */
bool entry_path_is_below(const char *path);

/* A path from the root: others than absolute ones begin at home, with "~" in front or without.
 * Without "." and "..", and without a slash at its end: 0 or -ENAMETOOLONG. */
int entry_path_from(const char *home, const char *path, char ret[ENTRY_PATH_MAX + 1]);
