// SPDX-License-Identifier: Apache-2.0
#include "auth/peer.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"

enum { RULES_MAX = 256, ENTRY_BYTES_MAX = 16 * 1024, GROUPS_FIRST = 256 };

struct peer_rule {
    enum { PEER_USER, PEER_GROUP, PEER_ANY } kind;
    uid_t uid;
    gid_t gid;
    struct caller caller;
};

struct peer_rules {
    struct peer_rule *list;
    size_t count;
};

DEFINE_CLEANUP(peer_rules_free, struct peer_rules *);

/* Finds the user or group of this machine that a rule is for. */
static int peer_resolve(const char *who, struct peer_rule *rule, struct err *err)
{
    cleanup_free char *text = xcalloc(1, ENTRY_BYTES_MAX);
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;

    if (strcmp(who, "*") == 0) {
        rule->kind = PEER_ANY;
    } else if (*who == '@') {
        rule->kind = PEER_GROUP;
        if (getgrnam_r(who + 1, &group, text, ENTRY_BYTES_MAX, &found_group) != 0 || !found_group)
            return err_set(err, ERR_INVALID, "socket.owners: no group '%.60s'", who + 1);
        rule->gid = group.gr_gid;
    } else {
        rule->kind = PEER_USER;
        if (getpwnam_r(who, &user, text, ENTRY_BYTES_MAX, &found_user) != 0 || !found_user)
            return err_set(err, ERR_INVALID, "socket.owners: no user '%.60s'", who);
        rule->uid = user.pw_uid;
    }
    return 0;
}

/* Parses "WHO=OWNER" or "WHO=OWNER:ROLE", which it takes apart. */
static int rule_parse(char *text, struct peer_rule *ret, struct err *err)
{
    char *owner = strchr(text, '='), *role = owner ? strchr(owner, ':') : NULL;
    int r;

    ret->caller.role = ROLE_USER;
    if (role)
        *role++ = '\0';
    if (!owner || owner == text || (role && !role_parse(role, &ret->caller.role)))
        return err_set(err, ERR_INVALID,
                       "socket.owners: '%.60s' is not USER=OWNER, @GROUP=OWNER or *=OWNER, with "
                       ":admin or :read-only behind it if it is not a user",
                       text);
    *owner++ = '\0';
    r = owner_check_name(owner, err);
    if (r < 0)
        return r;
    (void)snprintf(ret->caller.owner, sizeof(ret->caller.owner), "%s", owner);
    return peer_resolve(text, ret, err);
}

int peer_rules_parse(const char *text, struct peer_rules **ret, struct err *err)
{
    cleanup_with(peer_rules_free_slot) struct peer_rules *rules = xcalloc(1, sizeof(*rules));
    cleanup_free char *copy = xstrdup(text);
    char *at = NULL;

    rules->list = xcalloc(RULES_MAX, sizeof(*rules->list));
    for (char *word = strtok_r(copy, ", ", &at); word; word = strtok_r(NULL, ", ", &at)) {
        int r = rules->count < RULES_MAX
                    ? rule_parse(word, &rules->list[rules->count], err)
                    : err_set(err, ERR_INVALID, "socket.owners has more than %d rules", RULES_MAX);

        if (r < 0)
            return r;
        rules->count++;
    }
    *ret = TAKE_PTR(rules);
    return 0;
}

void peer_rules_free(struct peer_rules *rules)
{
    if (!rules)
        return;
    free(rules->list);
    free(rules);
}

/* Reads the further groups of the peer, which the caller frees; 0 or -errno. */
static int peer_groups(int fd, gid_t **ret, size_t *ret_count)
{
    socklen_t size = GROUPS_FIRST * sizeof(gid_t);
    gid_t *groups = xcalloc(1, size);

    while (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) {
        int error = errno;

        free(groups);
        if (error != ERANGE) /* else size is what they need */
            return -error;
        groups = xcalloc(1, size);
    }
    *ret = groups;
    *ret_count = size / sizeof(gid_t);
    return 0;
}

static bool is_among(gid_t gid, const gid_t *groups, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

void peer_find(const struct peer_rules *rules, int fd, struct caller *ret)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    cleanup_free gid_t *groups = NULL;
    size_t count = 0;

    *ret = caller_root;
    if (!rules || rules->count == 0)
        return;
    *ret = (struct caller){ .role = ROLE_NONE };
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        peer_groups(fd, &groups, &count) < 0)
        return;
    *ret = caller_root;
    if (peer.uid == 0)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        const struct peer_rule *rule = &rules->list[i];

        if (rule->kind == PEER_ANY || (rule->kind == PEER_USER && rule->uid == peer.uid) ||
            (rule->kind == PEER_GROUP &&
             (rule->gid == peer.gid || is_among(rule->gid, groups, count)))) {
            *ret = rule->caller;
            return;
        }
    }
}
