// SPDX-License-Identifier: Apache-2.0
#include "host/observe/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/backup/remote_store.h"
#include "host/core/config.h"
#include "host/core/host.h"
#include "host/core/sysctl.h"
#include "host/machine/machine.h"
#include "host/observe/doctor_fix.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/volume/unrecorded.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/sk_lookup.h"
#include "kernel/sockets.h"
#include "runtime/program.h"
#include "store/disk.h"
#include "store/store.h"

enum { UNRECORDED_BYTES_MAX = 1 << 20 };

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct finding {
    enum verdict verdict;
    char detail[256];
    char remedy[256]; /* "" if the verdict is OK */
    char fixed[256];  /* the remedy that was applied; "": none */
};

static void finding_set(struct finding *finding, enum verdict verdict, const char *remedy,
                        const char *detail)
{
    finding->verdict = verdict;
    (void)snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
    (void)snprintf(finding->detail, sizeof(finding->detail), "%s", detail);
}

static void check_user(const struct config *config, struct finding *ret)
{
    (void)config;
    if (geteuid() == 0)
        finding_set(ret, VERDICT_OK, NULL, "root");
    else
        finding_set(ret, VERDICT_FAIL, "run holtd as root, or use sudo", "holtd needs root");
}

static void check_kernel(const struct config *config, struct finding *ret)
{
    struct utsname name;
    unsigned long major, minor = 0;
    char *end;

    (void)config;
    (void)uname(&name);
    major = strtoul(name.release, &end, 10);
    if (*end == '.')
        minor = strtoul(end + 1, NULL, 10);
    /* Overlay layers by descriptor need 6.13, clones of detached mounts 6.15. The sandbox check
     * below tests the features themselves. */
    if (major > 6 || (major == 6 && minor >= 15))
        finding_set(ret, VERDICT_OK, NULL, name.release);
    else
        finding_set(ret, VERDICT_WARN, "upgrade to Linux 6.15 or newer", name.release);
}

static void check_cgroups(const struct config *config, struct finding *ret)
{
    struct cgroup_root *root;
    struct err err = { 0 };
    char label[32];

    (void)config;
    (void)snprintf(label, sizeof(label), "holt-doctor-%d", (int)getpid());
    if (cgroup_root_open(label, &root, &err) < 0) {
        finding_set(ret, VERDICT_FAIL,
                    "mount cgroup2 at /sys/fs/cgroup, with memory, pids and cpu there or as v1",
                    err.msg);
        return;
    }
    if (cgroup_root_limits_sockets(root))
        finding_set(ret, VERDICT_OK, NULL, cgroup_root_kind(root));
    else
        finding_set(ret, VERDICT_WARN,
                    "use cgroup v2, or a kernel with memory.kmem.tcp.limit_in_bytes",
                    "this kernel does not limit the memory of sockets");
    cgroup_root_close(root);
}

static void finding_set_result(struct finding *finding, int result, const char *detail,
                               const struct err *err)
{
    if (result == 0)
        finding_set(finding, VERDICT_OK, NULL, detail);
    else
        finding_set(finding, VERDICT_WARN, err->remedy, err->msg);
}

static void check_files(const struct config *config, struct finding *ret)
{
    cleanup_free char *detail = NULL;
    struct err err = { 0 };
    long long now = 0;
    int r = sysctl_check_files(config, false, &err);

    (void)file_read_number_at(AT_FDCWD, "/proc/sys/fs/file-max", &now);
    detail = xasprintf("fs.file-max is %lld; holtd raises it if it is too low", now);
    finding_set_result(ret, r, detail, &err);
}

static void check_stamps(const struct config *config, struct finding *ret)
{
    struct err err = { 0 };

    (void)config;
    finding_set_result(ret, sysctl_check_stamps(false, &err),
                       "the kernel keeps no sent data of sandboxes", &err);
}

static void check_netlink(const struct config *config, struct finding *ret)
{
    struct err err = { 0 };

    (void)config;
    finding_set_result(ret, host_check_netlink(&err), "holt-init limits the sockets of a sandbox",
                       &err);
}

/* The memory guard asks for the same in each sandbox. */
static void check_guard(const struct config *config, struct finding *ret)
{
    uint64_t bytes;

    (void)config;
    if (sockets_read_uncharged(&bytes) == 0)
        finding_set(ret, VERDICT_OK, NULL, "the kernel reports the memory of sockets");
    else
        finding_set(ret, VERDICT_WARN,
                    "use a kernel with CONFIG_INET_DIAG and CONFIG_INET_UDP_DIAG",
                    "this kernel does not report the memory of sockets");
}

static void check_init(const struct config *config, struct finding *ret)
{
    cleanup_free char *path = NULL, *tools_path = NULL;
    struct err err = { 0 };

    (void)config;
    if (program_find("holt-init", &path, &err) < 0 ||
        program_find("holt-tools", &tools_path, &err) < 0)
        finding_set(ret, VERDICT_FAIL, "build it with 'make', or install Holt with 'make install'",
                    err.msg);
    else
        finding_set(ret, VERDICT_OK, NULL, path);
}

/* Returns the directory, or its nearest existing ancestor, which is on the same filesystem. */
static char *existing_parent(const char *path)
{
    char *parent = xstrdup(path);
    struct stat info;

    while (stat(parent, &info) < 0 && strrchr(parent, '/') != parent)
        *strrchr(parent, '/') = '\0';
    if (stat(parent, &info) < 0)
        (void)snprintf(parent, strlen(parent) + 1, "/");
    return parent;
}

static const char *filesystem_name(const struct statfs *info)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } names[] = {
        { EXT4_SUPER_MAGIC, "ext4" },         { BTRFS_SUPER_MAGIC, "btrfs" },
        { XFS_SUPER_MAGIC, "xfs" },           { TMPFS_MAGIC, "tmpfs" },
        { OVERLAYFS_SUPER_MAGIC, "overlay" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].magic == (unsigned long)info->f_type)
            return names[i].name;
    return "another filesystem";
}

/* Returns whether a daemon that runs, or was killed, had to remove its ballast. */
static bool is_ballast_freed(const char *state)
{
    cleanup_free char *mark = xasprintf("%s/holt.db-open", state);
    cleanup_free char *ballast = xasprintf("%s/" BALLAST_FILE, state);

    return access(mark, F_OK) == 0 && access(ballast, F_OK) < 0;
}

static void check_storage(const struct config *config, struct finding *ret)
{
    const uint64_t little = 1ULL << 30;
    cleanup_free char *path = existing_parent(config->state);
    cleanup_free char *detail = NULL;
    struct statfs info;
    uint64_t free_bytes;

    if (statfs(path, &info) < 0) {
        finding_set(ret, VERDICT_FAIL, "choose another directory with --state", strerror(errno));
        return;
    }
    free_bytes = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
    detail = xasprintf("%s on %s, %" PRIu64 " MiB free", config->state, filesystem_name(&info),
                       free_bytes >> 20);
    if (info.f_type == OVERLAYFS_SUPER_MAGIC)
        finding_set(ret, VERDICT_FAIL, "choose a directory that is not on an overlay with --state",
                    detail);
    else if (is_ballast_freed(config->state))
        finding_set(ret, VERDICT_WARN,
                    "free some space: the disk was full, and the ballast is gone", detail);
    else if (free_bytes < little)
        finding_set(ret, VERDICT_WARN, "free some space, or choose another directory with --state",
                    detail);
    else
        finding_set(ret, VERDICT_OK, NULL, detail);
}

/* Reads the list that the last daemon has written. */
static void check_registry(const struct config *config, struct finding *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(UNRECORDED_BYTES_MAX);
    cleanup_free char *path = xasprintf("%s/" UNRECORDED_FILE, config->state);
    cleanup_free char *detail = NULL;

    if (file_read_at(AT_FDCWD, path, &text) < 0 || text.len == 0) {
        detail = xasprintf("every volume in %s has a record", config->state);
        finding_set(ret, VERDICT_OK, NULL, detail);
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\n')
            text.data[i] = ' ';
    detail = xasprintf("volumes without a record in %s: %s", config->state, text.data);
    finding_set(ret, VERDICT_WARN,
                "restore the registry (docs/registry.md), or run 'holt volume adopt' for each",
                detail);
}

/* Runs `true` in a sandbox on a separate host, so that the result also holds for the daemon. */
static int run_true(struct host *host, struct err *err)
{
    static char *const args[] = { (char *)(uintptr_t) "true", NULL };
    const struct machine_spec machine_spec = { .caller = &caller_root, .template = "host" };
    const struct process_spec process_spec = { .args = args };
    struct reader_event event = { .kind = READER_DATA };
    struct machine *machine;
    struct process *process;
    char output[256];
    int r = machine_create(host, &machine_spec, &machine, err);

    if (r < 0)
        return r;
    r = process_start(machine, &process_spec, &process, err);
    if (r == 0) {
        while (event.kind != READER_ENDED)
            (void)process_next(process, -1, output, sizeof(output), &event);
        if (event.end.outcome != OUTCOME_EXITED || event.end.exit_code != 0)
            r = err_set(err, ERR_INTERNAL, "'true' failed: %.160s",
                        event.end.reason[0] ? event.end.reason : "unknown reason");
        process_unref(process);
    }
    machine_destroy(machine);
    machine_unref(machine);
    return r;
}

/* Opens a host with its own state directory, next to the real one and on the same filesystem. */
static int try_sandbox(const struct config *config, const char *runtime, struct finding *ret,
                       struct err *err)
{
    cleanup_free char *parent = existing_parent(config->state);
    cleanup_free char *state =
        xasprintf("%s/.holt-doctor-XXXXXX", strcmp(parent, "/") == 0 ? "" : parent);
    struct config trial = *config;
    struct host *host;
    int r;

    if (!mkdtemp(state))
        return err_sys(err, -errno, "create a directory in '%s'", parent);
    trial.state = state;
    trial.runtime = (char *)(uintptr_t)runtime;
    trial.pool_size = 0;
    r = host_open(&trial, NULL, &host, err);
    if (r == 0) {
        r = run_true(host, err);
        ret->verdict = VERDICT_OK;
        (void)snprintf(ret->detail, sizeof(ret->detail), "ran 'true' in one; volumes: %.180s; %s",
                       store_storage(host_store(host)),
                       store_has_quota(host_store(host)) ? "with quota" : "no quota");
        host_close(host);
    }
    (void)tree_remove_at(AT_FDCWD, state);
    return r;
}

static void check_sandbox(const struct config *config, struct finding *ret)
{
    struct err err = { 0 };

    if (try_sandbox(config, "native", ret, &err) < 0)
        finding_set(ret, VERDICT_FAIL,
                    "see the failed step above; in a container, Holt needs --privileged", err.msg);
}

static void check_bwrap(const struct config *config, struct finding *ret)
{
    struct err err = { 0 };

    if (try_sandbox(config, "bwrap", ret, &err) < 0)
        finding_set(ret, VERDICT_WARN, "install bubblewrap if you want to use --runtime bwrap",
                    err.msg);
}

static void check_gvisor(const struct config *config, struct finding *ret)
{
    struct err err = { 0 };

    if (try_sandbox(config, "gvisor", ret, &err) < 0)
        finding_set(ret, VERDICT_WARN, "install runsc if you want to use --runtime gvisor",
                    err.msg);
}

static void check_network(const struct config *config, struct finding *ret)
{
    cleanup_free char *path = NULL;
    struct err ignored;
    int r = sk_lookup_check();

    (void)config;
    if (program_find("holt-net", &path, &ignored) < 0)
        finding_set(ret, VERDICT_WARN, "install holt-net beside holt-init",
                    "holt-net is missing: sandboxes have no network");
    else if (r < 0)
        finding_set(ret, VERDICT_WARN, "run holtd as root on a kernel with sk_lookup (5.9)",
                    "no BPF program can be loaded: sandboxes have no network");
    else
        finding_set(ret, VERDICT_OK, NULL, "holt-net and BPF");
}

static void check_remote(const struct config *config, struct finding *ret)
{
    cleanup_free char *detail = xasprintf("%.200s answers", config->remote_url);
    struct err err = { 0 };
    int r = remote_store_probe(config, &err);

    if (r > 0)
        finding_set(ret, VERDICT_OK, NULL, "none: no deep pauses and no backups (remote.url)");
    else if (r < 0)
        finding_set(ret, VERDICT_WARN, "see remote.* in holt.conf(5)", err.msg);
    else
        finding_set(ret, VERDICT_OK, NULL, detail);
}

static const struct {
    const char *name;
    void (*run)(const struct config *config, struct finding *ret);
    doctor_fix_fn *fix; /* NULL: no remedy is safe enough */
} checks[] = {
    { "user", check_user, NULL },
    { "kernel", check_kernel, NULL },
    { "cgroups", check_cgroups, NULL },
    { "open files", check_files, doctor_fix_files },
    { "time stamps", check_stamps, doctor_fix_stamps },
    { "netlink", check_netlink, NULL },
    { "memory guard", check_guard, doctor_fix_guard },
    { "holt-init", check_init, NULL },
    { "storage", check_storage, doctor_fix_state },
    { "registry", check_registry, NULL },
    { "sandbox", check_sandbox, NULL },
    { "runtime bwrap", check_bwrap, NULL },
    { "runtime gvisor", check_gvisor, NULL },
    { "network", check_network, NULL },
    { "object storage", check_remote, NULL },
};

static const char *const verdict_names[] = { "ok", "warn", "fail" };

static void print_text(const struct finding *findings, FILE *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        (void)fprintf(out, "%-5s %-14s %s\n", verdict_names[findings[i].verdict], checks[i].name,
                      findings[i].detail);
        if (findings[i].remedy[0])
            (void)fprintf(out, "%-20s remedy: %s\n", "", findings[i].remedy);
        if (findings[i].fixed[0])
            (void)fprintf(out, "%-20s fixed: %s\n", "", findings[i].fixed);
    }
}

/* The JSON is that of HostService/Doctor. */
static void print_json(const struct finding *findings, bool can_run, FILE *out)
{
    cleanup_json json_t *list = json_array();
    cleanup_json json_t *report = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s*}", "check", checks[i].name, "verdict",
                            verdict_names[findings[i].verdict], "detail", findings[i].detail,
                            "remedy", findings[i].remedy, "fixed",
                            findings[i].fixed[0] ? findings[i].fixed : NULL));
    report = json_pack("{s:b, s:O}", "canRun", can_run, "checks", list);
    (void)json_dumpf(report, out, isatty(fileno(out)) ? JSON_INDENT(2) : JSON_COMPACT);
    (void)fputc('\n', out);
}

int doctor_run(const struct config *config, bool as_json, bool fixes, FILE *out)
{
    struct finding findings[ARRAY_SIZE(checks)] = { 0 };
    bool can_run = true;

    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (fixes && checks[i].fix)
            checks[i].fix(config, findings[i].fixed, sizeof(findings[i].fixed));
        checks[i].run(config, &findings[i]);
        can_run = can_run && findings[i].verdict != VERDICT_FAIL;
    }
    if (as_json)
        print_json(findings, can_run, out);
    else
        print_text(findings, out);
    return can_run ? 0 : 1;
}
