// SPDX-License-Identifier: Apache-2.0
#include "guest/process/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { PASSWD, GROUP, TEXT_MAX = 1 << 20 };

static const char *const paths[] = { "/etc/passwd", "/etc/group" };

static bool is_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev &&
           one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static char *text_read(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cleanup_free char *text = NULL;
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > TEXT_MAX)
        return NULL;
    text = malloc((size_t)st.st_size + 1);
    if (!text)
        return NULL;
    n = read_full(fd, text, (size_t)st.st_size);
    if (n < 0)
        return NULL;
    text[n] = '\0';
    return TAKE_PTR(text);
}

void names_refresh(struct names *names)
{
    for (int i = PASSWD; i <= GROUP; i++) {
        struct stat st = { 0 };

        if (stat(paths[i], &st) == 0 && names->files[i].text &&
            is_same_file(&st, &names->files[i].st))
            continue;
        free(names->files[i].text);
        names->files[i].text = text_read(paths[i]);
        names->files[i].st = st;
    }
}

/* Finds field `number` of a line "name:x:0:0:...". Returns its length, 0 if there is none. */
static size_t line_field(const char *line, int number, const char **ret)
{
    size_t len = strcspn(line, "\n");

    for (; number > 0; number--) {
        size_t skip = strcspn(line, ":\n");

        if (skip >= len)
            return 0;
        line += skip + 1;
        len -= skip + 1;
    }
    *ret = line;
    return strcspn(line, ":\n");
}

static bool line_number_field(const char *line, int number, uint32_t *ret)
{
    const char *text = NULL;
    size_t len = line_field(line, number, &text);
    unsigned long long value = 0;

    if (len == 0 || len > 10 || strspn(text, "0123456789") < len)
        return false;
    for (size_t i = 0; i < len; i++)
        value = value * 10 + (unsigned)(text[i] - '0');
    *ret = (uint32_t)value;
    return value < UINT32_MAX;
}

static const char *next_line(const char *line)
{
    line = strchr(line, '\n');
    return line && line[1] ? line + 1 : NULL;
}

static void name_of(const char *text, uint32_t id, char ret[NAMES_TEXT_MAX + 1])
{
    ret[0] = '\0';
    for (const char *line = text; line; line = next_line(line)) {
        const char *name = NULL;
        uint32_t number;
        size_t len;

        if (!line_number_field(line, 2, &number) || number != id)
            continue;
        len = line_field(line, 0, &name);
        if (len == 0 || len > NAMES_TEXT_MAX)
            return;
        memcpy(ret, name, len);
        ret[len] = '\0';
        return;
    }
}

void names_of(const struct names *names, uint32_t uid, uint32_t gid,
              char ret_user[NAMES_TEXT_MAX + 1], char ret_group[NAMES_TEXT_MAX + 1])
{
    name_of(names->files[PASSWD].text, uid, ret_user);
    name_of(names->files[GROUP].text, gid, ret_group);
}

/* Returns whether a comma-separated list contains the name. */
static bool has_member(const char *list, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    while (len > 0) {
        size_t part = strcspn(list, ",\n");

        part = part < len ? part : len;
        if (part == name_len && strncmp(list, name, part) == 0)
            return true;
        list += part < len ? part + 1 : part;
        len -= part < len ? part + 1 : part;
    }
    return false;
}

static void groups_of(const struct names *names, const char *name, struct names_user *user)
{
    const size_t max = sizeof(user->groups) / sizeof(user->groups[0]);

    user->groups[user->group_count++] = user->gid;
    for (const char *line = names->files[GROUP].text; line; line = next_line(line)) {
        const char *members = NULL;
        size_t len = line_field(line, 3, &members);
        uint32_t gid;

        if (len > 0 && user->group_count < max && has_member(members, len, name) &&
            line_number_field(line, 2, &gid) && gid != user->gid)
            user->groups[user->group_count++] = gid;
    }
}

/* Copies the home directory of a passwd line, or a default if the line has no absolute path. */
static void home_of(const char *line, uint32_t uid, char ret[NAMES_HOME_MAX + 1])
{
    const char *home = NULL;
    size_t len = line ? line_field(line, 5, &home) : 0;

    if (len == 0 || len > NAMES_HOME_MAX || home[0] != '/') {
        home = uid == 0 ? "/root" : "/";
        len = strlen(home);
    }
    memcpy(ret, home, len);
    ret[len] = '\0';
}

/* Parses a passwd line. Returns false if a field is missing. */
static bool user_of(const char *line, struct names_user *ret)
{
    const char *name = NULL;
    size_t len = line_field(line, 0, &name);

    *ret = (struct names_user){ .group_count = 0 };
    if (len == 0 || len > NAMES_TEXT_MAX || !line_number_field(line, 2, &ret->uid) ||
        !line_number_field(line, 3, &ret->gid))
        return false;
    memcpy(ret->name, name, len);
    ret->name[len] = '\0';
    return true;
}

static bool is_digits(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0';
}

static int find_one(const struct names *names, const char *user, struct names_user *ret)
{
    bool is_number = is_digits(user);
    uint32_t wanted = 0;

    if (is_number && !line_number_field(user, 0, &wanted))
        return -EINVAL;
    for (const char *line = names->files[PASSWD].text; line; line = next_line(line)) {
        if (!user_of(line, ret) || (is_number ? ret->uid != wanted : strcmp(ret->name, user) != 0))
            continue;
        groups_of(names, ret->name, ret);
        home_of(line, ret->uid, ret->home);
        return 0;
    }
    if (!is_number)
        return -ENOENT;
    *ret = (struct names_user){ .uid = wanted, .gid = wanted, .group_count = 1 };
    ret->groups[0] = wanted;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", wanted == 0 ? "root" : user);
    home_of(NULL, wanted, ret->home);
    return 0;
}

int names_find(const struct names *names, const char *users, struct names_user *ret)
{
    int r;

    do {
        size_t len = strcspn(users, ":");
        char one[NAMES_TEXT_MAX + 1];

        if (len > NAMES_TEXT_MAX)
            return -EINVAL;
        memcpy(one, users, len);
        one[len] = '\0';
        r = find_one(names, one, ret);
        users += len;
    } while (r == -ENOENT && *users++ == ':');
    return r;
}

static int group_find(const struct names *names, const char *group, uint32_t *ret)
{
    size_t len = strlen(group);

    if (is_digits(group))
        return line_number_field(group, 0, ret) ? 0 : -EINVAL;
    for (const char *line = names->files[GROUP].text; line; line = next_line(line)) {
        const char *name = NULL;

        if (line_field(line, 0, &name) == len && strncmp(name, group, len) == 0 &&
            line_number_field(line, 2, ret))
            return 0;
    }
    return -ENOENT;
}

int names_set_group(const struct names *names, const char *group, struct names_user *user)
{
    int r = group_find(names, group, &user->gid);

    if (r < 0)
        return r;
    user->groups[0] = user->gid;
    user->group_count = 1;
    return 0;
}
