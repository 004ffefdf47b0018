/* User and group names, read from the sandbox's own /etc files. Any process of the sandbox may
 * have written to those. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { NAMES_TEXT_MAX = 64, NAMES_HOME_MAX = 1023, NAMES_GROUPS_MAX = 64 };

/* Zero-initialised by the caller. */
struct names {
    struct {
        char *text;
        struct stat st; /* of the file that text was read from */
    } files[2];         /* passwd, group */
};

struct names_user {
    char name[NAMES_TEXT_MAX + 1];
    char home[NAMES_HOME_MAX + 1]; /* absolute */
    uint32_t uid, gid;
    uint32_t groups[NAMES_GROUPS_MAX];
    size_t group_count;
};

/* Reads a file again if it has changed. */
void names_refresh(struct names *names);

/* Looks up the names of two ids; an id without a name gives "". */
void names_of(const struct names *names, uint32_t uid, uint32_t gid,
              char ret_user[NAMES_TEXT_MAX + 1], char ret_group[NAMES_TEXT_MAX + 1]);

/* Finds a user by name or number. Of several alternatives separated by ':' the first that exists
 * is used; a number always exists. Returns 0, -ENOENT or -EINVAL. */
int names_find(const struct names *names, const char *users, struct names_user *ret);

/* Makes a group, by name or number, the only one of a user. Returns 0, -ENOENT or -EINVAL. */
int names_set_group(const struct names *names, const char *group, struct names_user *user);
