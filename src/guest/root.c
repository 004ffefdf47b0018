// SPDX-License-Identifier: Apache-2.0
#include "guest/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/identity.h"
#include "guest/mount_point.h"
#include "kernel/mount.h"
#include "kernel/path.h"
#include "wire/message.h"

/* Mounts of ours that move along; a runtime that brought none of that name has nothing to move. */
static const char *const carried[] = { "proc", "sys", "dev" };

/* The directory below the new root, made where it is missing. A link there would send the mount
 * somewhere else, so it is refused. */
static int open_place(int root_fd, const char *name, int *ret_fd, struct err *err)
{
    int fd = open_no_links(root_fd, name, O_PATH | O_DIRECTORY, 0);

    if (fd == -ENOENT) {
        if (mkdirat(root_fd, name, 0755) < 0)
            return err_sys(err, -errno, "make directory '/%s' in the template", name);
        fd = open_no_links(root_fd, name, O_PATH | O_DIRECTORY, 0);
    }
    if (fd == -ELOOP || fd == -ENOTDIR)
        return err_set(err, ERR_INVALID, "the template's '/%s' is not a directory", name);
    if (fd < 0)
        return err_sys(err, fd, "open '/%s' in the template", name);
    *ret_fd = fd;
    return 0;
}

static int attach_below(int root_fd, const char *target, int mount_fd, struct err *err)
{
    cleanup_close int place = -EBADF;
    int r = open_place(root_fd, target + 1, &place, err);

    if (r < 0)
        return r;
    r = mount_attach(mount_fd, place);
    return r < 0 ? err_sys(err, r, "attach '%s'", target) : 0;
}

/* What the sandbox itself left on the way to the place may lead it anywhere in the root, but not
 * where it would be covered, or cover what holt-init relies on. */
static int attach_volume(int root_fd, const char *target, int mount_fd, const int *places,
                         struct err *err)
{
    cleanup_close int place = -EBADF;
    int r = place_open(root_fd, target, &place, err);

    if (r < 0)
        return r;
    if (place_is_within(place, root_fd, root_fd))
        return err_set(err, ERR_INVALID, "volume path '%.150s' leads to '/'", target);
    for (size_t i = 0; i < ARRAY_SIZE(carried); i++)
        if (place_is_within(place, places[i], root_fd))
            return err_set(err, ERR_INVALID, "volume path '%.150s' leads into '/%s'", target,
                           carried[i]);
    r = mount_attach(mount_fd, place);
    return r < 0 ? err_sys(err, r, "attach volume '%.150s'", target) : 0;
}

/* What this namespace was born with cannot be moved, but it can be copied. */
static int attach_or_copy(int mount_fd, int place)
{
    cleanup_close int copy_fd = -EBADF;
    int r = mount_attach(mount_fd, place);

    if (r != -EINVAL)
        return r;
    copy_fd = mount_clone(mount_fd, "", true);
    return copy_fd < 0 ? copy_fd : mount_attach(copy_fd, place);
}

/* Everything about the new root that can be wrong with it, before anything of the old one moves. */
static int prepare(const struct message_root *message, const int *fds, int *places, struct err *err)
{
    cleanup_close int workspace = -EBADF;
    size_t own = message->mount_count - message->volume_count;
    int root_fd = fds[0], r = 0;

    for (size_t i = 1; r == 0 && i < own; i++)
        r = attach_below(root_fd, message->targets[i], fds[i], err);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(carried); i++)
        r = open_place(root_fd, carried[i], &places[i], err);
    if (r == 0)
        r = open_place(root_fd, "workspace", &workspace, err);
    for (size_t i = own; r == 0 && i < message->mount_count; i++)
        r = attach_volume(root_fd, message->targets[i], fds[i], places, err);
    return r;
}

static int carry_over(int old_root_fd, const int *places, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(carried); i++) {
        cleanup_close int mount_fd =
            openat(old_root_fd, carried[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r;

        if (mount_fd < 0 && errno == ENOENT)
            continue;
        r = mount_fd < 0 ? -errno : attach_or_copy(mount_fd, places[i]);
        if (r < 0)
            return err_sys(err, r, "carry '/%s' over", carried[i]);
    }
    return 0;
}

static void close_places(int (*places)[ARRAY_SIZE(carried)])
{
    for (size_t i = 0; i < ARRAY_SIZE(*places); i++)
        cleanup_close_fd(&(*places)[i]);
}

int root_enter(const struct message_root *message, const int *fds, const struct identity *identity,
               struct err *err)
{
    cleanup_close int old_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(close_places) int places[ARRAY_SIZE(carried)] = { -EBADF, -EBADF, -EBADF };
    int root_fd = fds[0], r;

    if (old_root_fd < 0)
        return err_sys(err, -errno, "open the present root");
    r = mount_attach(root_fd, old_root_fd);
    if (r < 0)
        return err_sys(err, r, "attach the new root");
    r = prepare(message, fds, places, err);
    if (r == 0)
        r = identity_cover(identity, root_fd, message->hostname, err);
    if (r == 0)
        r = carry_over(old_root_fd, places, err);
    if (r < 0) {
        (void)mount_detach(root_fd);
        return r;
    }
    r = mount_pivot(root_fd);
    if (r < 0)
        return err_sys(err, r, "move to the new root");
    if (sethostname(message->hostname, strlen(message->hostname)) < 0)
        return err_sys(err, -errno, "set the host name to '%s'", message->hostname);
    return 0;
}
