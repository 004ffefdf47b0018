// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about services, shells, ports and templates: whatever the bytes, a typed refusal,
 * or a call of the host with what the host may rely on. */
#define process_service_launch fuzz_launch
#define shell_service_run fuzz_shell_run
#define shell_service_open fuzz_shell_open
#define shell_service_list fuzz_shell_list
#define shell_service_remove fuzz_shell_remove
#define port_service_forward fuzz_port_forward
#define port_service_list fuzz_port_list
#define template_service_import fuzz_template_import
#define template_service_list fuzz_template_list
#define template_service_remove fuzz_template_remove
#define template_service_commit fuzz_template_commit
#define route_find fuzz_route_find
#define route_at fuzz_route_at
#define route_index fuzz_route_index

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "api/service.h"
#include "api/stream/shell_stream.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/thread.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/share.h"
#include "host/port/port.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/sandbox.h"
#include "host/shell/shell.h"
#include "store/template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPLY_BYTES = 1 << 16 };

/* --- a host that checks what it is told and refuses it ---------------------------------------- */

static int hosts_refusal(struct err *err)
{
    return err_set(err, ERR_BUSY, "not today");
}

static int check_sandbox_find(struct host *host, const struct caller *caller, const char *id,
                              struct sandbox **ret, struct err *err)
{
    (void)host;
    (void)caller;
    (void)err;
    assert(is_handle(id, SANDBOX_NAME_MAX) && !strstr(id, ".."));
    *ret = NULL;
    return 0;
}

static int check_service_launch(struct sandbox *sandbox, const struct process_spec *spec,
                                struct record **ret, struct err *err)
{
    (void)sandbox;
    (void)ret;
    assert(spec->args && spec->args[0] && *spec->args[0]);
    assert(spec->restart <= RESTART_ALWAYS && spec->is_detached);
    assert(!spec->has_terminal || spec->restart == RESTART_NO);
    assert(!spec->tag || strlen(spec->tag) <= 128);
    assert(!spec->key || strlen(spec->key) <= 128);
    return hosts_refusal(err);
}

static void shell_name_check(const char *name)
{
    assert(name && is_handle(name, SHELL_NAME_MAX));
}

static int check_shell_stream_run(const struct call *call, const char *sandbox,
                                  const struct shell_command *command, struct stream **ret,
                                  struct err *err)
{
    (void)call;
    (void)ret;
    assert(is_handle(sandbox, SANDBOX_NAME_MAX));
    shell_name_check(command->name);
    assert(command->text && command->timeout_ms <= INT64_MAX / 1000000);
    return hosts_refusal(err);
}

static int check_shell_get(struct sandbox *sandbox, const char *name, struct shell_info *ret,
                           struct err *err)
{
    (void)sandbox;
    (void)ret;
    shell_name_check(name);
    return hosts_refusal(err);
}

static int check_shell_open_with(struct sandbox *sandbox, const struct shell_command *command,
                                 struct shell_info *ret, struct err *err)
{
    assert(!command->cwd || *command->cwd == '/');
    return check_shell_get(sandbox, command->name, ret, err);
}

static int check_shell_remove(struct sandbox *sandbox, const char *name, struct err *err)
{
    return check_shell_get(sandbox, name, NULL, err);
}

static int check_shell_list(struct sandbox *sandbox, struct shell_info **ret, size_t *ret_count,
                            struct err *err)
{
    (void)sandbox;
    (void)ret;
    (void)ret_count;
    return hosts_refusal(err);
}

static int check_sandbox_forward(struct sandbox *sandbox, uint16_t port, const char *listen,
                                 struct port_forward **ret, struct err *err)
{
    (void)sandbox;
    (void)ret;
    assert(port > 0 && (!listen || *listen));
    return hosts_refusal(err);
}

static void check_nothing(struct sandbox *sandbox)
{
    assert(!sandbox);
}

static void check_sandbox_get_info(struct sandbox *sandbox, bool wants_space,
                                   struct sandbox_info *ret)
{
    (void)sandbox;
    (void)wants_space;
    *ret = (struct sandbox_info){ .id = "" };
}

static void check_port_list(struct host *host, const char *owner, struct port_info **ret,
                            size_t *ret_count)
{
    (void)host;
    (void)owner;
    (void)ret;
    *ret_count = 0;
}

static int check_sandbox_commit(struct sandbox *sandbox, const char *template,
                                struct template_info *ret, struct err *err)
{
    (void)sandbox;
    (void)ret;
    assert(is_name(template));
    return hosts_refusal(err);
}

static int check_owned_template_remove(struct host *host, const struct caller *caller,
                                       const char *name, struct err *err)
{
    (void)host;
    (void)caller;
    assert(*name && strlen(name) <= TEMPLATE_WORD_MAX);
    return hosts_refusal(err);
}

static int check_owned_template_share(struct host *host, const struct caller *caller,
                                      const char *name, const struct sharing *sharing,
                                      struct owned_template *ret, struct err *err)
{
    (void)host;
    (void)caller;
    (void)ret;
    assert(*name && strlen(name) <= TEMPLATE_WORD_MAX && sharing->owner_count <= SHARES_MAX);
    return hosts_refusal(err);
}

static int check_owned_template_reserve(struct host *host, const struct caller *caller,
                                        const char *name, struct template_record *ret,
                                        struct err *err)
{
    (void)host;
    (void)caller;
    (void)ret;
    assert(is_name(name));
    return hosts_refusal(err);
}

static int check_owned_template_find(struct host *host, const struct caller *caller,
                                     const char *name, struct template_record *ret, struct err *err)
{
    (void)host;
    (void)caller;
    (void)ret;
    assert(*name && strlen(name) <= TEMPLATE_WORD_MAX);
    return hosts_refusal(err);
}

static struct store *check_host_store(struct host *host)
{
    (void)host;
    return NULL;
}

static int check_owned_template_list(struct host *host, const struct caller *caller,
                                     struct owned_template **ret, size_t *ret_count,
                                     struct err *err)
{
    (void)host;
    (void)caller;
    (void)ret;
    (void)ret_count;
    return hosts_refusal(err);
}

#define sandbox_find check_sandbox_find
#define sandbox_forward check_sandbox_forward
#define sandbox_attach check_nothing
#define sandbox_detach(sandbox, ...) check_nothing(sandbox)
#define sandbox_unref check_nothing
#define sandbox_get_info check_sandbox_get_info
#define sandbox_commit check_sandbox_commit
#define service_launch check_service_launch
#define shell_stream_run check_shell_stream_run
#define shell_open_with check_shell_open_with
#define shell_remove check_shell_remove
#define shell_list check_shell_list
#define port_list check_port_list
#define host_store check_host_store
#define owned_template_find check_owned_template_find
#define owned_template_remove check_owned_template_remove
#define owned_template_share check_owned_template_share
#define owned_template_reserve check_owned_template_reserve
#define owned_template_list check_owned_template_list
#define thread_start check_thread_start

#include "../../../src/api/launch.c"   // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/port.c"     // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/route.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/shell.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/api/template.c" // NOLINT(bugprone-suspicious-include)

/* --------------------------------------------------------------------------------------------- */

static void refusal_check(const struct err *err)
{
    assert(err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED || err->kind == ERR_BUSY ||
           (err->kind == ERR_INTERNAL && err->errnum == EAGAIN));
    assert(*err->msg && !strpbrk(err->msg, "\n\r\033"));
}

static void unary_check(const char *path, const json_t *object)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(REPLY_BYTES);
    const struct call call = {
        .caller = &caller_root, .is_local = true, .connection_fd = -1, .out = &out
    };
    struct err err = { 0 };

    if (route_find(path)->unary(&call, object, &err) < 0)
        refusal_check(&err);
}

static void stream_check(const char *path, const json_t *object)
{
    static const struct call call = { .caller = &caller_root,
                                      .is_local = true,
                                      .connection_fd = -1 };
    struct stream *stream = NULL;
    struct err err = { 0 };

    assert(route_find(path)->stream(&call, object, &stream, &err) < 0 && !stream);
    refusal_check(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const unary[] = {
        "/holt.v1.ProcessService/Launch",  "/holt.v1.ShellService/Open",
        "/holt.v1.ShellService/List",      "/holt.v1.ShellService/Remove",
        "/holt.v1.PortService/List",       "/holt.v1.TemplateService/List",
        "/holt.v1.TemplateService/Remove", "/holt.v1.TemplateService/Commit",
    };
    static const char *const streams[] = {
        "/holt.v1.ShellService/Run",
        "/holt.v1.PortService/Forward",
        "/holt.v1.TemplateService/Import",
    };
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (json_parse_object((const char *)data, size, &object, &err) < 0) {
        refusal_check(&err);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(unary); i++)
        unary_check(unary[i], object);
    for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
        stream_check(streams[i], object);
    return 0;
}
