// SPDX-License-Identifier: Apache-2.0
#include "guest/process/user.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "guest/guest.h"
#include "guest/process/names.h"
#include "wire/message.h"

_Static_assert((int)NAMES_GROUPS_MAX <= (int)MESSAGE_GROUPS_MAX, "a user's groups fit a spawn");

/* Backing memory of the strings that the message points to; there is one thread. */
static struct {
    char home[sizeof("HOME=") + NAMES_HOME_MAX];
    char user[sizeof("USER=") + NAMES_TEXT_MAX];
    char logname[sizeof("LOGNAME=") + NAMES_TEXT_MAX];
    char cwd[PATH_MAX];
} texts;

/* Variables of the request take precedence. */
static int env_default(struct message_spawn *message, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < message->env_count; i++)
        if (strncmp(message->env[i], variable, len) == 0)
            return 0;
    if (message->env_count == MESSAGE_ENV_MAX)
        return -E2BIG;
    message->env[message->env_count++] = variable;
    message->env[message->env_count] = NULL;
    return 0;
}

static int set_env(struct message_spawn *message, const struct names_user *user)
{
    int r;

    (void)snprintf(texts.home, sizeof(texts.home), "HOME=%s", user->home);
    (void)snprintf(texts.user, sizeof(texts.user), "USER=%s", user->name);
    (void)snprintf(texts.logname, sizeof(texts.logname), "LOGNAME=%s", user->name);
    r = env_default(message, texts.home);
    if (r == 0)
        r = env_default(message, texts.user);
    return r == 0 ? env_default(message, texts.logname) : r;
}

static int set_cwd(struct message_spawn *message, const struct names_user *user)
{
    const char *cwd = message->cwd;

    if (cwd[0] == '/')
        return 0;
    if (cwd[0] == '~' && (cwd[1] == '/' || cwd[1] == '\0'))
        cwd++;
    if (snprintf(texts.cwd, sizeof(texts.cwd), "%s/%s", user->home, cwd) >= (int)sizeof(texts.cwd))
        return -ENAMETOOLONG;
    message->cwd = texts.cwd;
    return 0;
}

int user_resolve(struct guest *guest, struct message_spawn *message)
{
    struct names_user user;
    int r;

    names_refresh(&guest->names);
    r = names_find(&guest->names, message->user, &user);
    if (r == 0 && message->group[0])
        r = names_set_group(&guest->names, message->group, &user);
    if (r == 0)
        r = set_env(message, &user);
    if (r == 0)
        r = set_cwd(message, &user);
    if (r < 0)
        return r;
    message->uid = user.uid;
    message->gid = user.gid;
    memcpy(message->groups, user.groups, user.group_count * sizeof(user.groups[0]));
    message->group_count = user.group_count;
    return 0;
}
