/* The metadata of one file, as used in listings, copies and replies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum entry_type {
    ENTRY_NONE,
    ENTRY_FILE,
    ENTRY_DIRECTORY,
    ENTRY_LINK, /* symbolic link */
    ENTRY_PIPE,
    ENTRY_SOCKET,
    ENTRY_CHARACTER_DEVICE,
    ENTRY_BLOCK_DEVICE,
    ENTRY_TYPES
};

enum { ENTRY_PATH_MAX = 4095 }; /* bytes of a path, and of a link target */

struct stat;

/* Strings contain any bytes except NUL and are never NULL; "" if empty. */
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
    const char *target; /* of a symbolic link */
    const char
        *same_as; /* of a further hard link: the path of the file's first name in this tree */
    const char *user_name; /* as the sandbox's own files name them */
    const char *group_name;

    /* Details, if requested. */
    enum entry_type end_type; /* type of a link's final target; ENTRY_NONE: dangling */
    uint32_t end_mode;
    const char *end_path; /* its path, without any link */
    const char *meta;     /* names and values alternating, each with its NUL; NULL: not requested */
    size_t meta_len;
};

/* Returns the type that the bits of S_IFMT stand for; ENTRY_NONE for none that is known. */
enum entry_type entry_type_of(mode_t mode);

/* Converts a stat result; path is referenced, not copied. */
struct file_entry entry_of(const char *path, const struct stat *st);

/* Writes a text that changes whenever the contents of a file do: inode, time and size. */
enum { ENTRY_TAG_SIZE = 3 * 17 + 8 };
void entry_tag(const struct file_entry *entry, char ret[ENTRY_TAG_SIZE]);

/* Returns "file", "directory", "link", "pipe", "socket", "character-device", "block-device"; ""
 * for ENTRY_NONE. */
const char *entry_type_name(enum entry_type type);

/* Returns the type of a name, ENTRY_NONE if it is unknown. */
enum entry_type entry_type_find(const char *name);

/* Returns whether a path stays below its start: not empty, not absolute, no empty component, no
 * "." and no "..". */
bool entry_path_is_below(const char *path);

/* Makes a path absolute and normalised: relative paths, with or without "~", start at home;
 * without ".", ".." and trailing slash. Returns 0 or -ENAMETOOLONG. */
int entry_path_from(const char *home, const char *path, char ret[ENTRY_PATH_MAX + 1]);
