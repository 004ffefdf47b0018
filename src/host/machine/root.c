// SPDX-License-Identifier: Apache-2.0
/* The file tree of a machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/beside.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/secret/authority.h"
#include "host/view/machine_view.h"
#include "host/view/view.h"
#include "kernel/fds.h"
#include "kernel/path.h"
#include "store/template/template.h"
#include "store/volume/plain.h"
#include "store/volume/volume.h"
#include "wire/message.h"

enum { ROOT_TIMEOUT_MS = 30000 };

_Static_assert((int)VOLUME_TREES_MAX + (int)SANDBOX_MOUNTS_MAX <= (int)MESSAGE_MOUNTS_MAX &&
                   (int)MESSAGE_MOUNTS_MAX <= (int)FRAME_FDS_MAX &&
                   (int)FRAME_FDS_MAX <= (int)FDS_MAX,
               "every tree of a template, and every mount on top, must fit a root message");

/* The mounts of a root, bottom first; the descriptors belong to others. */
struct root_parts {
    const char *targets[MESSAGE_MOUNTS_MAX];
    int fds[MESSAGE_MOUNTS_MAX];
    size_t count;
    size_t volume_count; /* the last ones, which are shared volumes */
    bool has_codebase;   /* the one before those is a codebase */
    bool allows_setuid;
};

static void parts_add(struct root_parts *parts, const char *target, int fd)
{
    parts->targets[parts->count] = target;
    parts->fds[parts->count++] = fd;
}

static struct root_parts parts_from_mounts(const struct volume_mounts *mounts)
{
    struct root_parts parts = { .allows_setuid = mounts->allows_setuid,
                                .has_codebase = mounts->has_codebase };

    for (size_t i = 0; i < mounts->count; i++)
        parts_add(&parts, mounts->targets[i], mounts->fds[i]);
    return parts;
}

static void parts_close_volumes(struct root_parts *parts)
{
    while (parts->volume_count > 0) {
        parts->volume_count--;
        (void)close(parts->fds[--parts->count]);
    }
}

static int parts_add_volumes(struct root_parts *parts, struct machine *machine, int userns_fd,
                             const struct machine_files *files, struct err *err)
{
    struct store *store = machine->host->store;
    int r = 0;

    for (size_t i = 0; r == 0 && i < files->mount_count; i++) {
        const struct sandbox_mount *mount = &files->mounts[i];
        int fd = -EBADF;

        r = plain_mount(store, mount->shared_volume, userns_fd, mount->is_read_only, &fd, err);
        if (r < 0)
            return r;
        parts_add(parts, mount->path, fd);
        parts->volume_count++;
    }
    return r;
}

static int machine_make_volume(struct machine *machine, const char *template_name,
                               struct volume **ret, struct err *err)
{
    struct host *host = machine->host;
    cleanup_free char *name = xasprintf("%s-%s", machine->id, template_name);
    struct template *template;
    int r = template_open(host->store, template_name, &template, err);

    if (r < 0)
        return r;
    r = volume_create_scratch(host->store, name, template, ret, err);
    if (r < 0)
        template_close(template);
    return r;
}

/* Sends the root without waiting for the reply: a process may be sent right behind it. */
static int machine_send_root(struct machine *machine, const struct root_parts *parts,
                             const char *hostname, const struct authority *authority,
                             struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct message_root message = { .hostname = hostname,
                                    .allows_setuid = parts->allows_setuid,
                                    .mount_count = parts->count,
                                    .volume_count = parts->volume_count + parts->has_codebase,
                                    .ca = authority ? authority->certificate : "",
                                    .ca_hash = authority ? authority->hash : "" };
    int r;

    memcpy(message.targets, parts->targets, sizeof(parts->targets[0]) * parts->count);
    r = message_put_root(&out, &message);
    if (r == 0)
        r = channel_send(&machine->channel, &out, parts->fds, parts->count);
    return r < 0 ? err_sys(err, r, "send the root to machine '%s'", machine->id) : 0;
}

_Static_assert((int)SIZE_MEMORY_CURRENT == (int)CGROUP_MEMORY_CURRENT &&
                   (int)SIZE_MEMORY_STAT == (int)CGROUP_MEMORY_STAT &&
                   (int)SIZE_CPU_STAT == (int)CGROUP_CPU_STAT &&
                   (int)SIZE_PIDS_CURRENT == (int)CGROUP_PIDS_CURRENT &&
                   (int)SIZE_MEMORY_EVENTS == (int)CGROUP_MEMORY_EVENTS &&
                   (int)SIZE_COUNTERS == (int)CGROUP_COUNTERS,
               "a guest must know each counter by its position");

void machine_send_size(struct machine *machine, const struct cgroup_limits *limits)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    struct message_size size = { 0 };
    int all[CGROUP_COUNTERS], fds[CGROUP_COUNTERS];
    size_t count = 0;

    if (limits) {
        size.memory_bytes = limits->memory_bytes;
        size.cpu_millis = limits->cpu_millis;
        size.pids = limits->pids;
    } else {
        cgroup_open_counters(machine->host->cgroups, machine->guest.id, machine->guest.limits_group,
                             all);
        for (int i = 0; i < CGROUP_COUNTERS; i++) {
            if (all[i] < 0)
                continue;
            size.counters |= (uint8_t)(1U << i);
            fds[count++] = all[i];
        }
    }
    if ((limits || count > 0) && message_put_size(&out, &size) == 0)
        (void)channel_send(&machine->channel, &out, fds, count);
    while (count > 0)
        (void)close(fds[--count]);
}

int machine_set_scratch_root(struct machine *machine, const char *template, struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    cleanup_close int userns_fd = runtime_guest_open_userns(&machine->guest, err);
    struct root_parts parts;
    struct volume *volume;
    int r = userns_fd < 0 ? userns_fd : machine_make_volume(machine, template, &volume, err);

    if (r < 0)
        return r;
    machine->old_volume = machine->volume;
    machine->volume = volume;
    machine_set_template(machine, template);
    r = volume_mount(volume, userns_fd, machine->guest.first_uid, &mounts, err);
    if (r < 0)
        return r;
    parts = parts_from_mounts(&mounts);
    return machine_send_root(machine, &parts, machine->id, NULL, err);
}

void machine_set_template(struct machine *machine, const char *template)
{
    (void)snprintf(machine->template, sizeof(machine->template), "%s", template);
}

void machine_drop_volume(struct machine *machine)
{
    (void)volume_destroy(TAKE_PTR(machine->old_volume));
    (void)volume_destroy(TAKE_PTR(machine->volume));
}

static void machine_set_root_answer(struct machine *machine, enum root_answer answer)
{
    lock_take(&machine->lock);
    machine->root_answer = answer;
    lock_release(&machine->lock);
}

/* Waits until the guest has accepted or refused its new root. */
static int machine_wait_root_answer(struct machine *machine, struct err *err)
{
    uint64_t deadline_ms = clock_after_ms(ROOT_TIMEOUT_MS);
    int r = 0;

    lock_take(&machine->lock);
    while (machine->root_answer == ROOT_AWAITED && machine->state < MACHINE_FAILED &&
           cond_wait_until(&machine->changed, &machine->lock, deadline_ms))
        ;
    if (machine->root_answer == ROOT_TAKEN) {
        r = 0;
    } else if (machine->root_answer == ROOT_AWAITED && machine->state < MACHINE_FAILED) {
        r = err_set(err, ERR_INTERNAL, "holt-init did not answer within %d s",
                    ROOT_TIMEOUT_MS / 1000);
    } else {
        *err = machine->failure;
        r = -EIO;
    }
    machine->root_answer = ROOT_NOT_AWAITED;
    lock_release(&machine->lock);
    return r;
}

/* The paths are the sandbox's: another file that it has put there is held for a moment. */
void machine_hold_root(const struct machine *machine, struct volume *volume,
                       struct volume_mounts *ret)
{
    cleanup_close int root_fd = runtime_guest_open_root(&machine->guest);
    const char *target;

    ret->count = 0;
    for (size_t i = 0; root_fd >= 0 && (target = volume_target(volume, i)); i++) {
        int fd = i == 0 ? fcntl(root_fd, F_DUPFD_CLOEXEC, 3)
                        : open_no_links(root_fd, target + 1, O_PATH | O_DIRECTORY, 0);

        if (fd >= 0)
            ret->fds[ret->count++] = fd;
    }
}

int machine_enter(struct machine *machine, const struct machine_files *files,
                  struct volume_mounts *ret_old, struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    cleanup_with(volume_mounts_done) struct volume_mounts old = { .count = 0 };
    cleanup_with(parts_close_volumes) struct root_parts parts = { .count = 0 };
    cleanup_with(view_stop_slot) struct view *view = NULL;
    struct view *old_view;
    cleanup_close int userns_fd = runtime_guest_open_userns(&machine->guest, err);
    int r = userns_fd < 0 ? userns_fd : 0;

    if (r == 0 && machine->beside)
        r = machine_clone_mounts(machine->beside, files->volume, &mounts, err);
    else if (r == 0)
        r = volume_mount_masked(files->volume, userns_fd, machine->guest.first_uid, files->mask_fd,
                                &mounts, err);
    if (r == 0 && !machine->beside)
        r = machine_view_insert(machine, files, &mounts, &view, err);
    if (r < 0)
        return r;
    parts = parts_from_mounts(&mounts);
    r = parts_add_volumes(&parts, machine, userns_fd, files, err);
    if (r < 0)
        return r;
    if (ret_old)
        machine_hold_root(machine, files->volume, &old);
    machine_set_root_answer(machine, ROOT_AWAITED);
    r = machine_send_root(machine, &parts, files->hostname, files->authority, err);
    if (r == 0)
        r = machine_wait_root_answer(machine, err);
    else
        machine_set_root_answer(machine, ROOT_NOT_AWAITED);
    if (r < 0)
        return err_wrap(err, "switch to the new root");
    old_view = machine->view;
    machine->view = view;
    view = old_view; /* its mount was part of the old root */
    if (ret_old) {
        *ret_old = old;
        old.count = 0;
    }
    return 0;
}

int machine_listen(struct machine *machine, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    cleanup_close int fd = guest_socket_listen(machine->host->guests_fd, machine->id);
    size_t start;
    int r = fd;

    if (r < 0)
        return err_sys(err, r, "create the socket of machine '%s'", machine->id);
    start = frame_begin(&out, FRAME_LISTEN, 0, 1);
    r = frame_end(&out, start, true);
    if (r == 0)
        r = channel_send(&machine->channel, &out, &fd, 1);
    return r < 0 ? err_sys(err, r, "send the socket to machine '%s'", machine->id) : 0;
}
