// SPDX-License-Identifier: Apache-2.0
#include "host/process/viewer.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "wire/frame.h"

static bool size_is_same(struct terminal_size one, struct terminal_size other)
{
    return one.rows == other.rows && one.columns == other.columns;
}

/* Sets the wanted size to the smallest of all viewers; keeps it if there are none. Locked. */
static void size_choose(struct process *process)
{
    const struct viewer *viewer = process->viewers;
    struct terminal_size smallest;

    if (!viewer)
        return;
    smallest = viewer->size;
    while ((viewer = viewer->next)) {
        if (viewer->size.rows < smallest.rows)
            smallest.rows = viewer->size.rows;
        if (viewer->size.columns < smallest.columns)
            smallest.columns = viewer->size.columns;
    }
    process->size_wanted = smallest;
}

/* Sends the wanted size to the guest, unless another thread is doing so: that one sends the latest
 * before it stops. No lock is held while the guest is waited for, and still the last size that is
 * sent is the last one that was wanted. */
static int size_send(struct process *process)
{
    struct machine *machine = process->machine;
    int r = 0;

    lock_take(&machine->lock);
    if (process->is_resizing) {
        lock_release(&machine->lock);
        return 0;
    }
    process->is_resizing = true;
    while (r == 0 && !process->is_over &&
           (process->is_size_stale || !size_is_same(process->size_sent, process->size_wanted))) {
        struct terminal_size size = process->size_sent = process->size_wanted;

        process->is_size_stale = false;
        lock_release(&machine->lock);
        r = process_send_numbers(process, FRAME_RESIZE, size.rows, size.columns);
        if (r == 0)
            record_set_size(process->record, size);
        lock_take(&machine->lock);
    }
    process->is_resizing = false;
    lock_release(&machine->lock);
    return r;
}

static int terminal_check(const struct process *process, struct err *err)
{
    return process->has_terminal
               ? 0
               : err_set(err, ERR_INVALID, "process '%s' has no terminal", process->id);
}

int viewer_join(struct viewer *viewer, struct process *process, struct terminal_size size,
                bool is_owner, struct err *err)
{
    int r = terminal_check(process, err);

    if (r < 0)
        return r;
    viewer->process = process_ref(process);
    viewer->size = size;
    lock_take(&process->machine->lock);
    viewer->number = ++process->last_viewer;
    viewer->next = process->viewers;
    process->viewers = viewer;
    if (is_owner)
        process->owner = viewer;
    size_choose(process);
    lock_release(&process->machine->lock);
    (void)size_send(process); /* a guest that is gone ends the process, which says why */
    return 0;
}

void viewer_leave(struct viewer *viewer)
{
    struct process *process = TAKE_PTR(viewer->process);
    struct viewer **slot;

    if (!process)
        return;
    slot = &process->viewers;
    lock_take(&process->machine->lock);
    while (*slot != viewer)
        slot = &(*slot)->next;
    *slot = viewer->next;
    if (process->owner == viewer)
        process->owner = NULL;
    size_choose(process);
    lock_release(&process->machine->lock);
    (void)size_send(process);
    process_unref(process);
}

/* Locked. */
static struct viewer *viewer_find(const struct process *process, uint64_t number)
{
    struct viewer *viewer = process->viewers;

    if (number == 0)
        return process->owner;
    while (viewer && viewer->number != number)
        viewer = viewer->next;
    return viewer;
}

bool viewer_is_first(struct process *process, uint64_t number)
{
    const struct viewer *viewer;
    uint64_t first = 0; /* new ones are put before the others */

    lock_take(&process->machine->lock);
    for (viewer = process->viewers; viewer; viewer = viewer->next)
        first = viewer->number;
    lock_release(&process->machine->lock);
    return first == number;
}

/* Locked. Returns whether the number is that of a viewer, or 0. */
static bool size_set(struct process *process, uint64_t number, struct terminal_size size)
{
    struct viewer *viewer = viewer_find(process, number);

    if (viewer) {
        viewer->size = size;
        size_choose(process);
    } else if (number == 0) {
        process->size_wanted = size;
    }
    process->is_size_stale = true; /* a program in the sandbox may have changed it */
    return viewer || number == 0;
}

int viewer_resize(struct process *process, uint64_t number, struct terminal_size size,
                  struct err *err)
{
    bool is_over, is_found;
    int r = terminal_check(process, err);

    lock_take(&process->machine->lock);
    is_over = process->is_over;
    is_found = r == 0 && size_set(process, number, size);
    lock_release(&process->machine->lock);
    if (is_over)
        return err_refuse(err, CAUSE_PROCESS_ENDED, "process '%s' has ended", process->id);
    if (r < 0)
        return r;
    if (!is_found)
        return err_set(err, ERR_NOT_FOUND, "process '%s' has no viewer %llu", process->id,
                       (unsigned long long)number);
    r = size_send(process);
    return r < 0 ? err_sys(err, r, "resize the terminal of process '%s'", process->id) : 0;
}

void viewers_restore(struct process *process)
{
    lock_take(&process->machine->lock);
    process->is_size_stale = process->has_terminal && process->size_wanted.rows > 0;
    lock_release(&process->machine->lock);
    (void)size_send(process);
}
