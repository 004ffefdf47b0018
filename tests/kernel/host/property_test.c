// SPDX-License-Identifier: Apache-2.0
/* Runs random programs of operations on sandboxes and compares states, files, history and errors
 * with a model, on every storage backend.
 *
 * PROPERTY_PROGRAMS    number of programs per storage backend
 * PROPERTY_SEED        the seed of the first; the next one has the next number
 * PROPERTY_STORAGE     only this storage, as in the configuration ("dir", "zfs:POOL/DATASET", ...)
 * HOLT_TEST_ZFS        this one ("zfs:POOL/DATASET") beside the others
 *
 * A program that fails is printed as far as it came, with its seed; PROPERTY_SEED and
 * PROPERTY_PROGRAMS=1 run it alone. */
#include "kernel/host/host_world.h"
#include "kernel/host/property_diff.h"
#include "kernel/host/property_files.h"
#include "kernel/host/property_model.h"
#include "kernel/host/property_run.h"
#include "kernel/host/property_tar.h"
#include "kernel/host/property_template.h"

enum { OPERATIONS_A_PROGRAM = 30 };

static struct box boxes[BOXES];
static unsigned last_age;
static struct host_counts counts_before; /* while no host is open */

#define SAY(...) property_say(__VA_ARGS__)

static struct err err;

static size_t number_of(const struct box *box)
{
    return (size_t)(box - boxes);
}

/* --- results --------------------------------------------------------------------------------- */

static const char *result_name(int r)
{
    if (r >= 0)
        return "ok";
    return err.cause != CAUSE_NONE ? err_cause_name(err.cause) : err_kind_name(err.kind);
}

/* Checks the result of the last operation: this cause, or success. */
static bool expect(int r, enum err_cause wanted)
{
    SAY(" -> %s\n", result_name(r));
    CHECK((r < 0) == (wanted != CAUSE_NONE) && (r >= 0 || err.cause == wanted),
          "(%s instead of %s: %s)", result_name(r),
          wanted == CAUSE_NONE ? "ok" : err_cause_name(wanted), r < 0 ? err.msg : "");
    return r >= 0;
}

/* Returns the cause of the error in this state, by the table in sandbox.h. */
static enum err_cause cause_if(const struct box *box, bool is_fine)
{
    if (box->is_gone)
        return CAUSE_SESSION_DESTROYING;
    if (is_fine)
        return CAUSE_NONE;
    return box->state == SANDBOX_PAUSED ? CAUSE_SESSION_PAUSED : CAUSE_INVALID_STATE;
}

static bool is_awake(const struct box *box)
{
    return box->state == SANDBOX_ACTIVE || box->state == SANDBOX_STOPPED;
}

/* --- what must hold after every operation ---------------------------------------------------- */

static void check_info(const struct box *box)
{
    struct sandbox_info info;

    sandbox_get_info(box->handle, false, &info);
    CHECK(info.state == (box->is_gone ? SANDBOX_DESTROYING : box->state), "(sandbox %zu is %s)",
          number_of(box), sandbox_state_name(info.state));
    CHECK_TEXT(info.id, box->id);
    CHECK_TEXT(info.name, box->name);
    CHECK_TEXT(info.reason, "");
    CHECK_TEXT(info.base, box->base);
    CHECK(info.turns == box->turns, "(%u, not %u)", info.turns, box->turns);
    CHECK(box->is_gone || info.snapshot_count == box->snap_count, "(%u, not %zu)",
          info.snapshot_count, box->snap_count);
    sandbox_info_done(&info);
}

static void check_snapshots(const struct box *box)
{
    cleanup_free struct snapshot_info *list = NULL;
    size_t count;

    CHECK_OK(sandbox_list_snapshots(box->handle, &list, &count, &err), &err);
    CHECK(count == box->snap_count, "(%zu snapshots, not %zu)", count, box->snap_count);
    for (size_t i = 0; i < count; i++) {
        CHECK_TEXT(list[i].name, box->snaps[i].name);
        CHECK_TEXT(list[i].parent, box->snaps[i].parent);
        CHECK(list[i].kind == box->snaps[i].kind && list[i].turn == box->snaps[i].turn, "(%s)",
              list[i].name);
    }
}

static void check_files(const struct box *box)
{
    if (box->is_used && !box->is_gone && box->state == SANDBOX_ACTIVE)
        files_check(box->handle, &box->tree);
}

static const struct box *oldest_after(unsigned age)
{
    const struct box *oldest = NULL;

    for (const struct box *box = boxes; box < boxes + BOXES; box++)
        if (box->is_used && !box->is_gone && box->age > age && (!oldest || box->age < oldest->age))
            oldest = box;
    return oldest;
}

static void check_list(void)
{
    const struct box *box = oldest_after(0);
    struct sandbox_info *list;
    size_t count;

    sandbox_list(world.host, &caller_root, NULL, 0, &list, &count);
    for (size_t i = 0; i < count; i++) {
        CHECK(box, "(there is a sandbox %s)", list[i].id);
        CHECK_TEXT(list[i].id, box->id);
        CHECK_TEXT(list[i].name, box->name);
        CHECK(list[i].state == box->state);
        sandbox_info_done(&list[i]);
        box = oldest_after(box->age);
    }
    CHECK(!box, "(there is no sandbox %zu)", number_of(box));
    free(list);
}

/* --- making and ending ----------------------------------------------------------------------- */

static struct box *free_box(void)
{
    for (struct box *box = boxes; box < boxes + BOXES; box++)
        if (!box->is_used || box->is_gone)
            return box;
    return NULL;
}

static void box_forget(struct box *box)
{
    sandbox_unref(box->handle);
    *box = (struct box){ .is_used = false };
}

static void box_fill(struct box *box, struct sandbox *handle)
{
    struct sandbox_info info;

    sandbox_get_info(handle, false, &info);
    *box = (struct box){ .is_used = true, .handle = handle, .age = ++last_age };
    box->state = SANDBOX_ACTIVE;
    memcpy(box->id, info.id, sizeof(box->id));
    (void)snprintf(box->name, sizeof(box->name), "%.20s", info.name);
    sandbox_info_done(&info);
}

static bool is_taken(const char *name)
{
    for (const struct box *box = boxes; box < boxes + BOXES; box++)
        if (box->is_used && !box->is_gone && strcmp(box->name, name) == 0)
            return true;
    return false;
}

static void op_create(struct box *ignored)
{
    static const char *const names[] = { NULL, NULL, "one", "two", "three" };
    struct sandbox_spec spec = { .caller = &caller_root,
                                 .name = names[chance(ARRAY_SIZE(names))],
                                 .template = "small",
                                 .snapshots_max = one_in(4) ? 3 : 0 };
    struct box *box = free_box();
    struct sandbox *handle = NULL;

    (void)ignored;
    if (!box)
        return;
    box_forget(box);
    SAY("%zu: create %s, keep %u", number_of(box), spec.name ? spec.name : "without a name",
        spec.snapshots_max);
    if (!expect(sandbox_create(world.host, &spec, &handle, &err),
                spec.name && is_taken(spec.name) ? CAUSE_SESSION_EXISTS : CAUSE_NONE))
        return;
    box_fill(box, handle);
    CHECK_TEXT(box->name, spec.name ? spec.name : "");
    box->snapshots_max = spec.snapshots_max;
    box->tree = template_tree;
    if (box->tree.nodes[PLACE_NODES].kind == NODE_NONE) {
        files_make(&box->tree, PLACE_NODES, NODE_DIR, "");
        box->tree.nodes[PLACE_NODES].mode = 0777; /* every user works there */
    }
}

static void op_destroy(struct box *box)
{
    struct sandbox *found;

    SAY("%zu: destroy", number_of(box));
    (void)expect(sandbox_destroy(box->handle, &err), CAUSE_NONE);
    box->is_gone = true;
    SAY("%zu: find it", number_of(box));
    (void)expect(sandbox_find(world.host, &caller_root, box->id, &found, &err),
                 CAUSE_SESSION_NOT_FOUND);
}

/* --- files ----------------------------------------------------------------------------------- */

static int run_script(struct box *box, const char *script)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)script, NULL };
    struct process_spec spec = { .args = args };
    struct reader_event event = { .kind = READER_DATA };
    struct process *process;
    char data[1024];
    int r = sandbox_exec(box->handle, &spec, &process, &err);

    while (r >= 0 && event.kind != READER_ENDED) {
        CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
        CHECK(event.kind == READER_ENDED || event.len == 0, "(it says: %.*s)", (int)event.len,
              data);
    }
    if (r >= 0) {
        CHECK(event.end.outcome == OUTCOME_EXITED && event.end.exit_code == 0, "(exit %d: %s)",
              event.end.exit_code, event.end.reason);
        process_abandon(process);
    }
    return r;
}

static void op_change(struct box *box)
{
    cleanup_with(buf_done) struct buf script = BUF_INIT(4096);
    enum err_cause wanted = cause_if(box, box->state == SANDBOX_ACTIVE);
    struct files tree = box->tree;

    for (size_t count = 1 + chance(5); count > 0; count--) {
        change_any(&tree, &script);
        if (count > 1)
            CHECK(buf_add_str(&script, " && ") == 0);
    }
    SAY("%zu: exec %s", number_of(box), script.data);
    if (expect(run_script(box, script.data), wanted))
        box->tree = tree;
}

/* --- history --------------------------------------------------------------------------------- */

static void op_turn(struct box *box)
{
    enum err_cause wanted = cause_if(box, is_awake(box));
    struct snapshot_info taken;
    char name[WORD_BYTES];

    (void)snprintf(name, sizeof(name), "turn-%04u", box->turns + 1);
    SAY("%zu: turn", number_of(box));
    if (!expect(sandbox_turn(box->handle, &taken, &err), wanted))
        return;
    CHECK_TEXT(taken.name, name);
    CHECK_TEXT(taken.parent, box->base);
    box_add(box, name, SNAPSHOT_TURN);
    box_prune(box);
}

/* Picks a snapshot of this sandbox or, sometimes, one that it does not have. */
static const char *any_snapshot(const struct box *box)
{
    if (box->snap_count == 0 || one_in(8))
        return one_in(2) ? "nosuch" : "turn-0099";
    return box->snaps[chance(box->snap_count)].name;
}

static void op_snapshot(struct box *box)
{
    static const char *const names[] = { "a", "b", "c", "d.1", "E_2" };
    const char *name = names[chance(ARRAY_SIZE(names))];
    enum snapshot_kind kind = one_in(3) ? SNAPSHOT_TOOL : SNAPSHOT_NAMED;
    enum err_cause wanted = cause_if(box, true);
    struct snapshot_info taken;

    if (wanted == CAUSE_NONE && box_find(box, name))
        wanted = CAUSE_SNAPSHOT_EXISTS;
    SAY("%zu: %s snapshot %s", number_of(box), snapshot_kind_name(kind), name);
    if (!expect(sandbox_snapshot(box->handle, name, kind, &taken, &err), wanted))
        return;
    CHECK_TEXT(taken.name, name);
    box_add(box, name, kind);
    if (kind != SNAPSHOT_NAMED)
        box_prune(box);
}

/* Reserved names: an invalid request in every state. */
static void op_bad_snapshot(struct box *box)
{
    static const char *const names[] = { "turn-0007", "holt-x", "", "../a", "a/b", ".a" };
    const char *name = names[chance(ARRAY_SIZE(names))];
    struct snapshot_info taken;
    int r;

    if (box->is_gone)
        return;
    SAY("%zu: named snapshot '%s'", number_of(box), name);
    r = sandbox_snapshot(box->handle, name, SNAPSHOT_NAMED, &taken, &err);
    SAY(" -> %s\n", result_name(r));
    CHECK(r < 0 && err.kind == ERR_INVALID, "(%s)", result_name(r));
}

static void op_rollback(struct box *box)
{
    const char *name = any_snapshot(box);
    bool wants_newer_pruned = one_in(3);
    enum err_cause wanted = cause_if(box, is_awake(box));
    struct snap *snap = box_find(box, name);

    if (wanted == CAUSE_NONE && !snap)
        wanted = CAUSE_SNAPSHOT_NOT_FOUND;
    SAY("%zu: roll back to %s%s", number_of(box), name, wants_newer_pruned ? ", prune newer" : "");
    if (!expect(sandbox_rollback(box->handle, name, wants_newer_pruned, &err), wanted))
        return;
    box_roll_back(box, snap, wants_newer_pruned);
    check_files(box);
}

static void op_remove(struct box *box)
{
    const char *name = any_snapshot(box);
    enum err_cause wanted = cause_if(box, true);
    struct snap *snap = box_find(box, name);

    if (wanted == CAUSE_NONE && !snap)
        wanted = CAUSE_SNAPSHOT_NOT_FOUND;
    SAY("%zu: remove snapshot %s", number_of(box), name);
    if (expect(sandbox_remove_snapshot(box->handle, name, &err), wanted))
        box_remove(box, snap);
}

static void op_fork(struct box *box)
{
    const char *from = one_in(2) ? NULL : any_snapshot(box);
    enum err_cause wanted = cause_if(box, true);
    struct box *into = free_box();
    struct sandbox *handle;

    if (!into || into == box)
        return;
    if (wanted == CAUSE_NONE && from && !box_find(box, from))
        wanted = CAUSE_SNAPSHOT_NOT_FOUND;
    SAY("%zu: fork of %zu as %s", number_of(into), number_of(box), from ? from : "it is");
    if (!expect(
            sandbox_fork(box->handle,
                         &(struct fork_spec){ .caller = &caller_root, .from = from, .count = 1 },
                         &handle, &err),
            wanted))
        return;
    box_forget(into);
    box_fill(into, handle);
    CHECK_TEXT(into->name, "");
    into->snapshots_max = box->snapshots_max;
    into->tree = *box_tree(box, from);
    check_files(into);
    check_files(box);
}

static void op_diff(struct box *box)
{
    const char *from = one_in(3) ? NULL : one_in(3) ? "" : any_snapshot(box);
    const char *to = one_in(2) ? NULL : one_in(8) ? "" : any_snapshot(box);
    const struct files *old = box_tree(box, from ? from : box->base), *new = box_tree(box, to);
    struct sandbox_diff what = { .from = from, .to = to };
    enum err_cause wanted = old && new ? CAUSE_NONE : CAUSE_SNAPSHOT_NOT_FOUND;
    struct difference difference = { .old = old, .new = new };

    SAY("%zu: diff from %s to %s", number_of(box),
        !from   ? "base"
        : *from ? from
                : "template",
        !to   ? "now"
        : *to ? to
              : "template");
    if (expect(sandbox_diff(box->handle, &what, difference_add, &difference, &err),
               box->is_gone ? CAUSE_INVALID_STATE : wanted))
        difference_check(&difference);
}

/* --- power ----------------------------------------------------------------------------------- */

static void op_pause(struct box *box)
{
    SAY("%zu: pause", number_of(box));
    if (expect(sandbox_pause(box->handle, &err), cause_if(box, box->state == SANDBOX_ACTIVE)))
        box->state = SANDBOX_PAUSED;
}

static void op_resume(struct box *box)
{
    enum err_cause wanted = box->state == SANDBOX_PAUSED ? CAUSE_NONE : CAUSE_INVALID_STATE;

    SAY("%zu: resume", number_of(box));
    if (expect(sandbox_resume(box->handle, &err), box->is_gone ? CAUSE_SESSION_DESTROYING : wanted))
        box->state = SANDBOX_ACTIVE;
}

static void op_stop(struct box *box)
{
    SAY("%zu: stop", number_of(box));
    if (expect(sandbox_stop(box->handle, &err), cause_if(box, true)))
        box->state = SANDBOX_STOPPED;
}

static void op_start(struct box *box)
{
    enum err_cause wanted = box->state == SANDBOX_STOPPED ? CAUSE_NONE : CAUSE_INVALID_STATE;

    SAY("%zu: start", number_of(box));
    if (!expect(sandbox_start(box->handle, &err), box->is_gone ? CAUSE_SESSION_DESTROYING : wanted))
        return;
    box->state = SANDBOX_ACTIVE;
    check_files(box);
}

/* A closed host holds no resources. Mounts of other tests come and go; those of zfs stay by
 * design. */
static void check_counts(void)
{
    struct host_counts now = host_count();
    static bool is_zfs;

    if (world.config.storage) /* the configuration was freed after the last use */
        is_zfs = strncmp(world.config.storage, "zfs:", 4) == 0;

    CHECK(now.fds == counts_before.fds, "(%zu, not %zu)", now.fds, counts_before.fds);
    CHECK(is_zfs || now.mounts <= counts_before.mounts, "(%zu, not %zu)", now.mounts,
          counts_before.mounts);
}

static void op_restart(struct box *ignored)
{
    (void)ignored;
    SAY("restart of the host");
    for (struct box *box = boxes; box < boxes + BOXES; box++) {
        if (box->is_gone)
            box_forget(box);
        sandbox_unref(TAKE_PTR(box->handle));
    }
    host_close(TAKE_PTR(world.host));
    check_counts();
    world_start();
    SAY(" -> ok\n");
    for (struct box *box = boxes; box < boxes + BOXES; box++) {
        if (!box->is_used)
            continue;
        CHECK_OK(sandbox_find(world.host, &caller_root, box->id, &box->handle, &err), &err);
        check_info(box);
        check_snapshots(box);
        check_files(box);
    }
}

/* --- programs -------------------------------------------------------------------------------- */

static const struct operation {
    void (*run)(struct box *box);
    unsigned weight;
    bool needs_box;
} operations[] = {
    { op_create, 60, false },  { op_change, 300, true },      { op_turn, 100, true },
    { op_snapshot, 70, true }, { op_bad_snapshot, 10, true }, { op_rollback, 90, true },
    { op_remove, 40, true },   { op_fork, 50, true },         { op_diff, 90, true },
    { op_pause, 30, true },    { op_resume, 45, true },       { op_stop, 25, true },
    { op_start, 40, true },    { op_destroy, 25, true },      { op_restart, 2, false },
};

static const struct operation *any_operation(void)
{
    unsigned sum = 0, at;
    size_t i = 0;

    for (size_t j = 0; j < ARRAY_SIZE(operations); j++)
        sum += operations[j].weight;
    at = (unsigned)chance(sum);
    while (at >= operations[i].weight)
        at -= operations[i++].weight;
    return &operations[i];
}

static struct box *any_box(void)
{
    struct box *used[BOXES];
    size_t count = 0;

    for (struct box *box = boxes; box < boxes + BOXES; box++)
        if (box->is_used)
            used[count++] = box;
    if (count == 0)
        return NULL;
    return used[one_in(2) ? 0 : chance(count)]; /* so that one has a longer history */
}

static void step(void)
{
    const struct operation *operation = any_operation();
    struct box *box = any_box();

    if (operation->needs_box && !box)
        op_create(NULL);
    else
        operation->run(box);
    for (box = boxes; box < boxes + BOXES; box++) {
        if (!box->is_used)
            continue;
        check_info(box);
        if (!box->is_gone)
            check_snapshots(box);
    }
    check_list();
}

/* Checks the files of all remaining sandboxes and destroys them. */
static void finish(void)
{
    for (struct box *box = boxes; box < boxes + BOXES; box++) {
        if (!box->is_used)
            continue;
        if (!box->is_gone && box->state == SANDBOX_PAUSED)
            op_resume(box);
        if (!box->is_gone && box->state == SANDBOX_STOPPED)
            op_start(box);
        check_files(box);
        if (!box->is_gone)
            op_destroy(box);
        box_forget(box);
    }
    check_list();
}

/* Every operation has its own random seed, so that omitting one does not change the others. */
static void run_program(uint64_t seed, uint64_t left_out)
{
    property_begin(seed);
    for (uint64_t i = 0; i < OPERATIONS_A_PROGRAM; i++) {
        chance_state = (seed << 8 | i) * UINT64_C(0xd1342543de82ef95);
        if (!(left_out >> i & 1))
            step();
    }
    finish();
    property_end();
}

static void run_programs(const struct property_run *run)
{
    counts_before = host_count();
    world_open(run->storage);
    make_template(world.dir);
    for (uint64_t i = 0; i < run->count; i++)
        run_program(run->seed + i, run->left_out);
    world_close();
    check_counts();
}

int main(void)
{
    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return property_main(run_programs, OPERATIONS_A_PROGRAM);
}
