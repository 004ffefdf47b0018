// SPDX-License-Identifier: Apache-2.0
/* The files of the directory go into a sandbox of their own, from which the daemon copies them: it
 * reads no path of the client. */
#include "cli/template/image_build.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree_source.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "cli/core/connect.h"
#include "cli/core/ignore.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "client/message/tree.h"
#include "holt.h"

#define CONTEXT_DIR "/workspace"

enum { TEXT_BYTES_MAX = 1 << 20, CONTEXT_TTL_MS = 2 * 3600 * 1000 };

DEFINE_CLEANUP(ignore_free, struct ignore *);

struct context {
    struct tree_push *push;
    const struct ignore *ignore;
    struct holt_error error;
    bool is_left_out; /* the data belongs to a skipped file */
};

static int context_entry(void *into, const struct file_entry *entry)
{
    struct context *context = into;

    context->is_left_out =
        entry->type != ENTRY_FILE && entry->type != ENTRY_DIRECTORY && entry->type != ENTRY_LINK;
    if (context->is_left_out)
        return 0;
    return tree_push_entry(context->push, entry, &context->error) < 0 ? -EPIPE : 0;
}

static int context_data(void *into, const void *data, size_t len)
{
    struct context *context = into;

    return tree_push_data(context->push, data, len, &context->error) < 0 ? -EPIPE : 0;
}

static int context_trouble(void *into, const char *path, int errnum)
{
    (void)into;
    (void)report("template build: '%s' is left out: %s", path, strerror(errnum));
    return 0;
}

static bool context_omits(void *into, const char *path, bool is_directory)
{
    const struct context *context = into;

    return ignore_has(context->ignore, path) && (!is_directory || ignore_is_final(context->ignore));
}

static int text_read(int dir_fd, const char *path, struct buf *text)
{
    int r = file_read_at(dir_fd, path, text);

    if (r == 0 && text->data && memchr(text->data, '\0', text->len))
        r = -EILSEQ;
    return r;
}

/* Sends the directory to the sandbox. */
static int context_send(struct holt *holt, const char *dir, const char *sandbox)
{
    static const struct tree_source_ops ops = { context_entry, context_data, context_trouble,
                                                context_omits };
    const struct tree_source options = { .wants_data = true,
                                         .follows_top = true,
                                         .skips_top = true };
    const struct tree_place into = { .sandbox = sandbox, .path = CONTEXT_DIR };
    cleanup_free char *path = xasprintf("%s/.dockerignore", dir);
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    cleanup_with(ignore_free_slot) struct ignore *ignore = NULL;
    struct context context = { .is_left_out = false };
    int r = text_read(AT_FDCWD, path, &text);

    if (r < 0 && r != -ENOENT)
        return report("template build: %s: %s", path, strerror(-r));
    ignore = ignore_new(text.data);
    context.ignore = ignore;
    if (tree_push_open(holt, &into, &context.push, &context.error) < 0)
        return report_holt_error(&context.error);
    r = tree_source_run(AT_FDCWD, dir, &options, &ops, &context);
    if (r == 0 && tree_push_finish(context.push, &context.error) < 0)
        r = -EPIPE;
    tree_push_close(context.push);
    if (r == -EPIPE)
        return report_holt_error(&context.error);
    return r < 0 ? report("template build: %s: %s", dir, strerror(-r)) : STATUS_OK;
}

static void line_print(void *context, const char *line)
{
    (void)context;
    (void)fprintf(stderr, "%s\n", line);
}

static int template_make(struct holt *holt, const struct image_build_options *options,
                         const char *text, const char *sandbox, struct holt_template **ret)
{
    struct holt_build_options build = HOLT_INIT(holt_build_options);
    struct holt_error error;

    build.name = options->name;
    build.dockerfile = text;
    build.sandbox = sandbox;
    build.path = CONTEXT_DIR;
    build.target = options->target;
    build.args = options->args;
    build.is_forced = options->is_forced;
    build.on_line = line_print;
    return holt_template_build(holt, &build, HOLT_NO_DEADLINE, ret, &error) < 0
               ? report_holt_error(&error)
               : STATUS_OK;
}

/* Builds with a sandbox for the context, which ends with the build. */
static int context_build(struct holt *holt, const char *dir,
                         const struct image_build_options *options, const char *text,
                         struct holt_template **ret)
{
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_sandbox_options create = HOLT_INIT(holt_sandbox_options);
    const struct holt_network_rules network = { .mode = "none" };
    struct holt_error error;
    int status;

    create.template_name = "host";
    create.network = &network;
    create.ttl_ms = CONTEXT_TTL_MS;
    if (holt_sandbox_create(holt, &create, HOLT_NO_DEADLINE, &sandbox, &error) < 0)
        return report_holt_error(&error);
    status = context_send(holt, dir, sandbox->id);
    if (status == STATUS_OK)
        status = template_make(holt, options, text, sandbox->id, ret);
    (void)holt_sandbox_destroy(holt, sandbox->id, HOLT_NO_DEADLINE, &error);
    return status;
}

/* Reads the Dockerfile. Returns the exit status. */
static int file_read(const char *dir, const char *file, struct buf *text)
{
    cleanup_free char *path = file ? xstrdup(file) : xasprintf("%s/Dockerfile", dir);
    int r = text_read(AT_FDCWD, strcmp(path, "-") == 0 ? "/dev/stdin" : path, text);

    return r < 0 ? report("template build: %s: %s", path, strerror(-r)) : STATUS_OK;
}

/* By default a template is called as its directory. */
static const char *name_of(const char *dir, char real[PATH_MAX])
{
    char *slash = realpath(dir, real) ? strrchr(real, '/') : NULL;

    return slash && slash[1] ? slash + 1 : NULL;
}

int image_build_run(const char *dir, const struct image_build_options *options,
                    const struct output_options *output)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    cleanup_result struct holt_template *template = NULL;
    struct image_build_options given = *options;
    char real[PATH_MAX];
    int status = file_read(dir, options->file, &text);

    if (status != STATUS_OK)
        return status;
    if (!given.name)
        given.name = name_of(dir, real);
    if (!given.name || !text.data)
        return report("template build: %s: %s", dir,
                      text.data ? strerror(errno) : "the Dockerfile is empty");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = context_build(connection.holt, dir, &given, text.data, &template);
    return status != STATUS_OK || !template
               ? status
               : output_id(output, template, "template", template->name);
}
