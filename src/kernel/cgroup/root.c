// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"
#include "kernel/path.h"

#define OWN_LEAF "holtd" /* group that the daemon may have to move to: see enable_controller */

enum {
    PROC_TEXT_MAX = 1 << 20,
    PATH_BYTES = CGROUP_LOCATION_BYTES,
    SWEEP_MS = 1000,
    SWEEP_PAUSE_MS = 5,
};

/* Returns whether word is one of the comma-separated words of list. */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Finds the mount point of a hierarchy: cgroup2 for a NULL controller, else the v1 one with it. */
static bool find_mount(const char *mountinfo, const char *controller, char *ret_path, size_t size)
{
    cleanup_free char *text = xstrdup(mountinfo);
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char path[PATH_BYTES], type[32], options[256];
        const char *dash = strstr(line, " - ");

        if (!dash || sscanf(line, "%*s %*s %*s %*s %511s", path) != 1 ||
            sscanf(dash, " - %31s %*s %255s", type, options) != 2)
            continue;
        if (controller ? strcmp(type, "cgroup") == 0 && list_has(options, controller)
                       : strcmp(type, "cgroup2") == 0) {
            (void)snprintf(ret_path, size, "%s", path);
            return true;
        }
    }
    return false;
}

/* Finds this process's own group in a hierarchy, from /proc/self/cgroup ("0::" for cgroup2). */
static void find_own_group(const char *self_cgroup, const char *controller, char *ret, size_t size)
{
    cleanup_free char *text = xstrdup(self_cgroup);
    char *save = NULL;

    (void)snprintf(ret, size, "/");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;

        if (!path)
            continue;
        *path++ = '\0';
        names++;
        if (controller ? list_has(names, controller) : *names == '\0')
            (void)snprintf(ret, size, "%s", path);
    }
}

/* Strips the leaf group into which an earlier daemon, or systemd's DelegateSubgroup=, moved the
 * daemon: groups with controllers cannot be created there. */
static void leaf_strip(char *group)
{
    size_t len = strlen(group), leaf = strlen("/" OWN_LEAF);

    if (len >= leaf && strcmp(group + len - leaf, "/" OWN_LEAF) == 0)
        (void)snprintf(group + len - leaf, leaf + 1, "%s", len == leaf ? "/" : "");
}

static int open_group(int mount_fd, const char *path)
{
    while (*path == '/')
        path++;
    return open_beneath(mount_fd, *path ? path : ".", O_DIRECTORY | O_RDONLY, 0);
}

/* Returns whether an earlier run left anything below the label in this group. Removes an empty
 * group of that name. */
static bool has_leftovers(int mount_fd, const char *path, const char *label)
{
    cleanup_close int fd = open_group(mount_fd, path);

    return fd >= 0 && unlinkat(fd, label, AT_REMOVEDIR) < 0 && errno != ENOENT;
}

/* State of cgroup_root_open_at. */
struct open_state {
    struct cgroup_root *root;
    struct buf mounts, self; /* /proc/self/mountinfo and /proc/self/cgroup */
    struct cgroup_locations before, now;
};

static void open_state_done(struct open_state *state)
{
    buf_done(&state->mounts);
    buf_done(&state->self);
}

/* Opens the parent of the label's group in one hierarchy. Returns 0, or -ENOENT if there is no
 * such hierarchy. */
static int parent_open(struct open_state *state, int which, int *ret_fd, struct err *err)
{
    const char *controller = which == CGROUP_UNIFIED ? NULL : cgroup_hierarchy_names[which];
    const char *before = state->before.path[which];
    char mount_path[PATH_BYTES], *parent = state->now.path[which];
    cleanup_close int mount_fd = -EBADF;
    int fd;

    if (!find_mount(state->mounts.data, controller, mount_path, sizeof(mount_path)))
        return -ENOENT;
    mount_fd = open(mount_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mount_fd < 0)
        return err_sys(err, -errno, "open '%s'", mount_path);
    find_own_group(state->self.data, controller, parent, PATH_BYTES);
    if (which == CGROUP_UNIFIED)
        leaf_strip(parent);
    if (*before && strcmp(before, parent) != 0 &&
        has_leftovers(mount_fd, before, state->root->label))
        memcpy(parent, before, PATH_BYTES);
    fd = open_group(mount_fd, parent);
    if (fd < 0)
        return err_sys(err, fd, "open control group '%s' in '%s'", parent, mount_path);
    *ret_fd = fd;
    return 0;
}

static int make_label_group(int own_fd, const char *label, int *ret_fd, struct err *err)
{
    int fd;

    if (mkdirat(own_fd, label, 0755) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "make control group '%s'", label);
    fd = openat(own_fd, label, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "open control group '%s'", label);
    *ret_fd = fd;
    return 0;
}

/* Enables a v2 controller for the children of a group. That is not possible while the group has
 * processes of its own, so the daemon then moves to a leaf group. */
static int enable_controller(int group_fd, const char *name)
{
    char text[32];
    int r;

    (void)snprintf(text, sizeof(text), "+%s", name);
    r = file_write_at(group_fd, "cgroup.subtree_control", text);
    if (r != -EBUSY)
        return r;
    if (mkdirat(group_fd, OWN_LEAF, 0755) < 0 && errno != EEXIST)
        return -errno;
    r = file_write_at(group_fd, OWN_LEAF "/cgroup.procs", "0");
    return r < 0 ? r : file_write_at(group_fd, "cgroup.subtree_control", text);
}

static bool has_controller(int group_fd, const char *name)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);

    if (file_read_at(group_fd, "cgroup.controllers", &text) < 0)
        return false;
    for (char *at = text.data; *at; at++)
        if (*at == ' ' || *at == '\n')
            *at = ',';
    return list_has(text.data, name);
}

static int open_controller(struct open_state *state, int which, struct err *err)
{
    const char *name = cgroup_hierarchy_names[which];
    struct cgroup_root *root = state->root;
    int r;

    root->has_v2[which] = has_controller(root->unified_own_fd, name);
    if (root->has_v2[which])
        return 0;
    r = parent_open(state, which, &root->v1_own_fd[which], err);
    if (r == -ENOENT)
        return err_set(err, ERR_UNSUPPORTED, "no cgroup controller '%s' on this host", name);
    return r;
}

static int parents_open(struct open_state *state, struct err *err)
{
    int r = file_read_at(AT_FDCWD, "/proc/self/mountinfo", &state->mounts);

    if (r == 0)
        r = file_read_at(AT_FDCWD, "/proc/self/cgroup", &state->self);
    if (r < 0)
        return err_sys(err, r, "read this process's mounts and groups");
    r = parent_open(state, CGROUP_UNIFIED, &state->root->unified_own_fd, err);
    if (r == -ENOENT)
        return err_set(err, ERR_UNSUPPORTED,
                       "no cgroup2 hierarchy is mounted (usually at /sys/fs/cgroup)");
    for (int i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        r = open_controller(state, i, err);
    return r;
}

static int make_controller(struct cgroup_root *root, int which, struct err *err)
{
    const char *name = cgroup_hierarchy_names[which];
    int r;

    if (!root->has_v2[which])
        return make_label_group(root->v1_own_fd[which], root->label, &root->v1_fd[which], err);
    r = enable_controller(root->unified_own_fd, name);
    if (r == 0)
        r = enable_controller(root->unified_fd, name);
    return r < 0 ? err_sys(err, r, "enable cgroup controller '%s'", name) : 0;
}

static int make_groups(struct cgroup_root *root, struct err *err)
{
    int r = make_label_group(root->unified_own_fd, root->label, &root->unified_fd, err);

    for (int i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        r = make_controller(root, i, err);
    return r;
}

static struct cgroup_root *root_new(const char *label)
{
    struct cgroup_root *root = xcalloc(1, sizeof(*root));

    root->label = xstrdup(label);
    root->unified_own_fd = root->unified_fd = -EBADF;
    atomic_init(&root->spare_fd, open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        root->v1_own_fd[i] = root->v1_fd[i] = -EBADF;
    for (int i = 0; i < ROOM_FILES; i++)
        root->room_fds[i] = -EBADF;
    return root;
}

DEFINE_CLEANUP(cgroup_root_close, struct cgroup_root *);

int cgroup_root_open(const char *label, struct cgroup_root **ret, struct err *err)
{
    return cgroup_root_open_at(label, NULL, ret, err);
}

int cgroup_root_open_at(const char *label, const char *home_file, struct cgroup_root **ret,
                        struct err *err)
{
    cleanup_with(cgroup_root_close_slot) struct cgroup_root *root = root_new(label);
    cleanup_with(open_state_done) struct open_state state = { .root = root,
                                                              .mounts = BUF_INIT(PROC_TEXT_MAX),
                                                              .self = BUF_INIT(PROC_TEXT_MAX) };
    int r;

    if (home_file)
        cgroup_locations_read(home_file, &state.before);
    r = parents_open(&state, err);
    if (r < 0)
        return r;
    /* Recorded before the groups are created, so that they can be found again. */
    if (home_file) {
        r = cgroup_locations_write(home_file, &state.now);
        if (r < 0)
            return err_sys(err, r, "write '%s'", home_file);
    }
    r = make_groups(root, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(root);
    return 0;
}

struct sweep {
    struct cgroup_root *root;
    cgroup_keep_fn keep;
    void *context;
    uint64_t deadline_ms; /* for all groups together */
};

static int sweep_kill(const struct sweep *sweep, const char *name)
{
    return cgroup_kill(sweep->root, name, NULL);
}

/* Returns -EBUSY for a group whose processes have not ended at the deadline. */
static int sweep_remove(const struct sweep *sweep, const char *name)
{
    int r = cgroup_wait_event(sweep->root, name, NULL, "populated 0", sweep->deadline_ms);

    if (r == -ETIMEDOUT)
        return -EBUSY;
    return r == 0 ? cgroup_remove(sweep->root, name, NULL) : r;
}

/* The same for the groups of a zygote in the hierarchies of controllers. */
static int sweep_remove_zygote(const struct sweep *sweep, const char *name)
{
    int r = cgroup_zygote_try_remove(sweep->root, name);

    while (r == -EBUSY && clock_ms() < sweep->deadline_ms) {
        clock_sleep_ms(SWEEP_PAUSE_MS);
        r = cgroup_zygote_try_remove(sweep->root, name);
    }
    return r;
}

/* Calls act for every group below dir_fd that is not kept. Returns how many were not busy, or
 * -errno. */
static int sweep_each(const struct sweep *sweep, int dir_fd,
                      int (*act)(const struct sweep *sweep, const char *name))
{
    int fd = openat(dir_fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC), swept = 0, r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return -errno;
    while (r == 0 && (entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            (sweep->keep && sweep->keep(entry->d_name, sweep->context)))
            continue;
        r = act(sweep, entry->d_name);
        swept += r == 0;
        if (r == -EBUSY || r == -ENOENT || r == -ENODEV)
            r = 0;
    }
    (void)closedir(dir);
    return r < 0 ? r : swept;
}

int cgroup_root_sweep(struct cgroup_root *root, cgroup_keep_fn keep, void *context, struct err *err)
{
    struct sweep sweep = { .root = root, .keep = keep, .context = context };
    int swept = 0, r = sweep_each(&sweep, root->unified_fd, sweep_kill);

    sweep.deadline_ms = clock_after_ms(SWEEP_MS);
    if (r >= 0)
        r = swept = sweep_each(&sweep, root->unified_fd, sweep_remove);
    for (int i = 0; r >= 0 && i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            r = sweep_each(&sweep, root->v1_fd[i], sweep_remove_zygote);
    return r < 0 ? err_sys(err, r, "remove leftovers in control group '%s'", root->label) : swept;
}

void cgroup_root_close(struct cgroup_root *root)
{
    if (!root)
        return;
    for (int i = 0; i < ROOM_FILES; i++)
        root->room_fds[i] = fd_close(root->room_fds[i]);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (root->v1_own_fd[i] >= 0)
            (void)unlinkat(root->v1_own_fd[i], root->label, AT_REMOVEDIR);
        root->v1_fd[i] = fd_close(root->v1_fd[i]);
        root->v1_own_fd[i] = fd_close(root->v1_own_fd[i]);
    }
    if (root->unified_own_fd >= 0)
        (void)unlinkat(root->unified_own_fd, root->label, AT_REMOVEDIR);
    root->unified_fd = fd_close(root->unified_fd);
    (void)fd_close(atomic_exchange(&root->spare_fd, -1));
    root->unified_own_fd = fd_close(root->unified_own_fd);
    free(root->label);
    free(root);
}

const char *cgroup_root_kind(const struct cgroup_root *root)
{
    return root->v1_fd[CGROUP_MEMORY] >= 0 ? "cgroup v1 (hybrid)" : "cgroup v2";
}
