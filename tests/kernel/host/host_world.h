/* A complete host in the test process, without the API, for tests of sandboxes. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "host/core/config.h"
#include "host/core/host.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "kernel/harness.h"
#include "store/template/template.h"
#include "toolbox/tool.h"

#define CHECK_OK(call, err) CHECK((call) >= 0, "(%s)", (err)->msg)

static struct {
    char dir[64];
    struct config config;
    struct host *host;
} world;

/* The host looks for its programs next to its own: build/tests/kernel/ is not build/. */
static inline void world_find_init(void)
{
    static const char *const names[] = { "holt-init", "holt-tools" };
    char self[PATH_MAX], up[64] = "", link[PATH_MAX], target[sizeof(up) + 16];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 32);

    CHECK(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    /* Relative, as the source tree may be moved. */
    for (const char *at = self + strlen(build_path("")) - 1; at; at = strchr(at + 1, '/'))
        (void)snprintf(up + strlen(up), sizeof(up) - strlen(up), "../");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        (void)snprintf(link, sizeof(link), "%.*s/%s", (int)sizeof(link) - 16, self, names[i]);
        (void)snprintf(target, sizeof(target), "%s%s", up, names[i]);
        CHECK(symlink(target, link) == 0 || errno == EEXIST);
    }
}

static inline void world_start(void)
{
    struct err err = { 0 };

    CHECK_OK(host_open(&world.config, &toolbox_extension, &world.host, &err), &err);
}

static inline void world_set(const char *key, const char *value)
{
    struct err err = { 0 };

    CHECK_OK(config_set(&world.config, key, value, &err), &err);
}

/* storage has the syntax of the configuration; a NULL dir makes a temporary one. */
static inline void world_open(const char *storage)
{
    char state[128];
    struct err err = { 0 };

    if (world.dir[0] == '\0') {
        (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-host-test-XXXXXX");
        CHECK(mkdtemp(world.dir));
    }
    world_find_init();
    (void)snprintf(state, sizeof(state), "%s/state", world.dir);
    CHECK_OK(config_load("/dev/null", &world.config, &err), &err);
    world_set("state", state);
    world_set("storage", storage);
    world_set("pool.size", "1");
    world_start();
}

static inline void world_close(void)
{
    host_close(TAKE_PTR(world.host));
    config_done(&world.config);
    CHECK(tree_remove_at(AT_FDCWD, world.dir) == 0);
    world.dir[0] = '\0';
}

/* Imports a small root with busybox and two files. */
static inline void world_import(const char *name)
{
    char dir[sizeof(world.dir) + 8], command[1024];
    struct template_source source = { .name = name, .path = dir };
    struct template_info info;
    struct err err = { 0 };
    pid_t pid;
    int status;

    (void)snprintf(dir, sizeof(dir), "%.64s/root", world.dir);
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/bin %s/etc %s/tmp && cp $(command -v busybox) %s/bin/busybox && "
                   "for a in sh cat ls rm mkdir mv ln sleep touch test echo true kill dd sync; do "
                   "ln -sf busybox %s/bin/$a; done && echo template > %s/etc/origin && "
                   "echo 0123 > %s/etc/machine-id",
                   dir, dir, dir, dir, dir, dir, dir);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_OK(template_import(host_store(world.host), &source, &info, &err), &err);
}

/* --- sandboxes ------------------------------------------------------------------------------- */

static inline struct sandbox *world_create(const char *name)
{
    struct sandbox_spec spec = { .caller = &caller_root, .name = name, .template = "small" };
    struct sandbox *sandbox = NULL;
    struct err err = { 0 };

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &err), &err);
    return sandbox;
}

/* Runs a command to its end; *ret_output (may be NULL) gets its output. */
static inline int world_sh(struct sandbox *sandbox, const char *command, struct buf *ret_output)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)command, NULL };
    struct process_spec spec = { .args = args };
    struct reader_event event = { 0 };
    struct process *process;
    struct err err = { 0 };
    char data[8192];

    if (sandbox_exec(sandbox, &spec, &process, &err) < 0)
        return -1;
    do {
        CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
        if (event.kind != READER_ENDED && ret_output)
            CHECK(buf_add(ret_output, data, event.len) == 0);
    } while (event.kind != READER_ENDED);
    process_abandon(process);
    return event.end.exit_code;
}

/* Returns how many processes of this name the sandbox itself sees. */
static inline int world_running(struct sandbox *sandbox, const char *name)
{
    cleanup_with(buf_done) struct buf said = BUF_INIT(4096);
    char command[128];

    (void)snprintf(command, sizeof(command), "busybox pidof %s | busybox wc -w", name);
    CHECK(world_sh(sandbox, command, &said) == 0);
    CHECK(buf_add(&said, "", 1) == 0);
    return (int)strtol(said.data, NULL, 10);
}

/* Returns the contents of a file in the sandbox without the newline; "" if it does not exist. */
static inline const char *world_cat(struct sandbox *sandbox, const char *path)
{
    static char text[4096];
    char command[256];
    cleanup_with(buf_done) struct buf output = BUF_INIT(sizeof(text) - 1);

    (void)snprintf(command, sizeof(command), "cat %s 2>/dev/null", path);
    (void)world_sh(sandbox, command, &output);
    memcpy(text, output.data ? output.data : "", output.len);
    while (output.len > 0 && text[output.len - 1] == '\n')
        output.len--;
    text[output.len] = '\0';
    return text;
}

static inline enum sandbox_state world_state(struct sandbox *sandbox)
{
    struct sandbox_info info;
    enum sandbox_state state;

    sandbox_get_info(sandbox, false, &info);
    state = info.state;
    sandbox_info_done(&info);
    return state;
}

static inline void world_destroy(struct sandbox *sandbox)
{
    struct err err = { 0 };

    CHECK_OK(sandbox_destroy(sandbox, &err), &err);
    sandbox_unref(sandbox);
}
