/* Names of users and groups, from the sandbox's own files, which anybody in it may have written. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { NAMES_TEXT_MAX = 64, NAMES_HOME_MAX = 1023, NAMES_GROUPS_MAX = 64 };

/* Zero at the beginning. */
struct names {
    struct {
        char *text;
        struct stat st; /* of what text was read from */
    } files[2];         /* passwd, group */
};

struct names_user {
    char name[NAMES_TEXT_MAX + 1];
    char home[NAMES_HOME_MAX + 1]; /* absolute */
    uint32_t uid, gid;
    uint32_t groups[NAMES_GROUPS_MAX];
    size_t group_count;
};

/* Looks again whether the files have changed. */
void names_refresh(struct names *names);

/* Empty for who has no name. */
void names_of(const struct names *names, uint32_t uid, uint32_t gid,
              char ret_user[NAMES_TEXT_MAX + 1], char ret_group[NAMES_TEXT_MAX + 1]);

/* By name or number; of several with ':' between them the first that there is, and any number is.
 * 0, -ENOENT or -EINVAL. */
int names_find(const struct names *names, const char *users, struct names_user *ret);
