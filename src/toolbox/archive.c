// SPDX-License-Identifier: Apache-2.0
#include "toolbox/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/tool_internal.h"

enum { LINE_MAX_BYTES = 1024 * 1024 };

struct tool_archive *tool_archive_new(struct sandbox *sandbox)
{
    struct tool_archive *archive = xcalloc(1, sizeof(*archive));
    int state_fd = host_state_fd(sandbox_host(sandbox));
    char path[BOUNDED_DIR_PATH_MAX];

    (void)snprintf(path, sizeof(path), "tools/%s/calls", sandbox_id(sandbox));
    bounded_dir_init(&archive->calls, state_fd, path, ARCHIVE_CALLS_MAX, ARCHIVE_CALLS_BYTES);
    (void)snprintf(path, sizeof(path), "tools/%s/outputs", sandbox_id(sandbox));
    bounded_dir_init(&archive->outputs, state_fd, path, ARCHIVE_OUTPUTS_MAX, ARCHIVE_OUTPUTS_BYTES);
    return archive;
}

struct tool_archive *tool_archive_of(struct sandbox *sandbox)
{
    return sandbox_extension_data(sandbox);
}

void tool_archive_free(struct tool_archive *archive)
{
    bounded_dir_done(&archive->calls);
    bounded_dir_done(&archive->outputs);
    free(archive);
}

void tool_archive_remove(struct sandbox *sandbox)
{
    struct tool_archive *archive = tool_archive_of(sandbox);
    char path[BOUNDED_DIR_PATH_MAX];

    bounded_dir_purge(&archive->calls);
    bounded_dir_purge(&archive->outputs);
    (void)snprintf(path, sizeof(path), "tools/%s", sandbox_id(sandbox));
    (void)unlinkat(host_state_fd(sandbox_host(sandbox)), path, AT_REMOVEDIR);
}

/* --- the file of a call ---------------------------------------------------------------------- */

static json_t *call_pack_changes(const struct tool_result *result)
{
    json_t *list = json_array();

    for (size_t i = 0; i < result->changed_count; i++) {
        char kind[] = { result->changed[i].kind, '\0' };

        (void)json_array_append_new(list,
                                    json_pack("[s, o]", kind, json_text(result->changed[i].path)));
    }
    return list;
}

static json_t *call_pack_line(const struct tool_job *job)
{
    const struct tool_result *result = &job->result;
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:b, s:o}", "id",
                  job->call_id, "tool", job->tool->name, "digest", job->digest, "generation",
                  (json_int_t)job->end_generation, "error", result->is_error, "timed_out",
                  result->timed_out, "oom", result->oom, "truncated", result->is_truncated, "shown",
                  (json_int_t)result->shown, "total", (json_int_t)result->total, "ms",
                  (json_int_t)result->duration_ms, "len", (json_int_t)job->blocks[0].len,
                  "changed_cut", result->changed_is_cut, "changed", call_pack_changes(result));

    if (line && result->is_canceled)
        (void)json_object_set_new(line, "canceled", json_true());
    if (line && job->is_stronger)
        (void)json_object_set_new(line, "stronger", json_true());
    if (line && result->has_exit_code)
        (void)json_object_set_new(line, "exit", json_integer(result->exit_code));
    if (line && job->blocks[0].mime)
        (void)json_object_set_new(line, "mime", json_text(job->blocks[0].mime));
    if (line && result->handle)
        (void)json_object_set_new(line, "handle", json_text(result->handle));
    if (line && result->snapshot_id)
        (void)json_object_set_new(line, "snapshot", json_text(result->snapshot_id));
    if (line && result->snapshot_error)
        (void)json_object_set_new(line, "snapshot_error", json_text(result->snapshot_error));
    return line;
}

static int call_write(int fd, const json_t *line, const char *content, size_t len)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(LINE_MAX_BYTES);
    int r = line ? json_write(line, &out) : -EINVAL;

    if (r == 0)
        r = buf_add_str(&out, "\n");
    if (r == 0)
        r = write_all(fd, out.data, out.len);
    return r == 0 ? write_all(fd, content, len) : r;
}

static int call_store(struct tool_job *job, const json_t *line, const char *content, size_t len)
{
    struct bounded_dir *bounded_dir = &tool_archive_of(job->sandbox)->calls;
    struct bounded_dir_file file = BOUNDED_DIR_FILE_INIT;
    int r = bounded_dir_create(bounded_dir, &file);

    if (r < 0)
        return r;
    r = call_write(file.fd, line, content, len);
    if (r < 0) {
        bounded_dir_drop(bounded_dir, &file);
        return r;
    }
    return bounded_dir_put(bounded_dir, &file, job->id_hash);
}

void tool_archive_store(struct tool_job *job)
{
    cleanup_json json_t *line = call_pack_line(job);

    (void)call_store(job, line, job->blocks[0].text, job->blocks[0].len);
}

int tool_archive_keep(struct tool_job *job)
{
    cleanup_free char *params = job->params ? json_dumps(job->params, JSON_COMPACT) : xstrdup("{}");
    cleanup_json json_t *line =
        params
            ? json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "id", job->call_id, "tool",
                        job->tool->name, "digest", job->digest, "generation",
                        (json_int_t)job->generation, "len", (json_int_t)strlen(params), "kept", 1)
            : NULL;

    return line ? call_store(job, line, params, strlen(params)) : -ENOMEM;
}

static bool flag_of(const json_t *line, const char *name)
{
    return json_is_true(json_object_get(line, name));
}

static uint64_t number_of(const json_t *line, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(line, name));

    return number > 0 ? (uint64_t)number : 0;
}

/* Copies a string of the line; returns NULL if it is absent. */
static const char *text_of(const json_t *line, const char *name, char *into, size_t size)
{
    const char *text = json_string_value(json_object_get(line, name));

    if (!text)
        return NULL;
    (void)snprintf(into, size, "%s", text);
    return into;
}

static void call_unpack_changes(struct tool_job *job, const json_t *list)
{
    size_t index;
    json_t *pair;

    json_array_foreach(list, index, pair) {
        const char *kind = json_string_value(json_array_get(pair, 0));
        const char *path = json_string_value(json_array_get(pair, 1));

        if (kind && path)
            tool_job_add_change(job, kind[0], path);
    }
}

static void call_unpack_line(struct tool_job *job, const json_t *line)
{
    struct tool_result *result = &job->result;
    const json_t *code = json_object_get(line, "exit");

    *result = (struct tool_result){
        .is_error = flag_of(line, "error"),
        .timed_out = flag_of(line, "timed_out"),
        .oom = flag_of(line, "oom"),
        .is_canceled = flag_of(line, "canceled"),
        .is_truncated = flag_of(line, "truncated"),
        .shown = number_of(line, "shown"),
        .total = number_of(line, "total"),
        .duration_ms = number_of(line, "ms"),
        .changed_is_cut = flag_of(line, "changed_cut"),
        .has_exit_code = json_is_integer(code),
        .exit_code = (int)json_integer_value(code),
        .handle = text_of(line, "handle", job->handle, sizeof(job->handle)),
        .snapshot_id = text_of(line, "snapshot", job->snapshot_id, sizeof(job->snapshot_id)),
        .snapshot_error =
            text_of(line, "snapshot_error", job->snapshot_error, sizeof(job->snapshot_error)),
    };
    job->is_stronger = flag_of(line, "stronger");
    job->mime = text_of(line, "mime", job->mime_text, sizeof(job->mime_text));
    call_unpack_changes(job, json_object_get(line, "changed"));
}

/* The file of a call, and where its content begins. */
struct call_file {
    struct buf bytes;
    json_t *line;
    size_t at;
};

static void call_file_done(struct call_file *file)
{
    buf_done(&file->bytes);
    json_decref(file->line);
}

/* Checks that the file is whole and of this call. */
static bool call_file_parse(const struct tool_job *job, struct call_file *file)
{
    const struct buf *bytes = &file->bytes;
    const char *end = bytes->len ? memchr(bytes->data, '\n', bytes->len) : NULL;
    struct err ignored;
    const char *id;

    file->at = end ? (size_t)(end - bytes->data) + 1 : 0;
    if (!end || json_parse_object(bytes->data, file->at - 1, &file->line, &ignored) < 0)
        return false;
    id = json_string_value(json_object_get(file->line, "id"));
    return id && strcmp(id, job->call_id) == 0 && json_object_get(file->line, "digest") &&
           number_of(file->line, "len") == bytes->len - file->at;
}

static bool call_file_read(struct tool_job *job, struct call_file *ret)
{
    cleanup_close int fd = bounded_dir_open(&tool_archive_of(job->sandbox)->calls, job->id_hash);
    struct stat info;
    ssize_t n;

    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size > ARCHIVE_CALLS_BYTES ||
        buf_reserve(&ret->bytes, (size_t)info.st_size) < 0)
        return false;
    n = read_full(fd, ret->bytes.data, (size_t)info.st_size);
    ret->bytes.len = n > 0 ? (size_t)n : 0;
    return call_file_parse(job, ret);
}

int tool_archive_find(struct tool_job *job, struct err *err)
{
    cleanup_with(call_file_done) struct call_file file = { .bytes = BUF_INIT(ARCHIVE_CALLS_BYTES) };
    const char *digest;

    if (!call_file_read(job, &file) || flag_of(file.line, "kept") ||
        (job->digest[0] && number_of(file.line, "generation") != job->generation))
        return 0;
    digest = json_string_value(json_object_get(file.line, "digest"));
    if (job->digest[0] && (!digest || strcmp(digest, job->digest) != 0))
        return tool_job_refuse_reused_id(job, err);
    if (buf_add(&job->text, file.bytes.data + file.at, file.bytes.len - file.at) < 0)
        return 0;
    call_unpack_line(job, file.line);
    return 1;
}

bool tool_archive_find_kept(struct tool_job *job, struct tool_kept *ret)
{
    cleanup_with(call_file_done) struct call_file file = { .bytes = BUF_INIT(ARCHIVE_CALLS_BYTES) };
    const char *name;
    struct err ignored;

    if (!call_file_read(job, &file) || !flag_of(file.line, "kept"))
        return false;
    name = json_string_value(json_object_get(file.line, "tool"));
    *ret = (struct tool_kept){ .tool = name ? tool_find(name) : NULL,
                               .generation = (uint32_t)number_of(file.line, "generation") };
    return ret->tool && json_parse_object(file.bytes.data + file.at, file.bytes.len - file.at,
                                          &ret->params, &ignored) == 0;
}
