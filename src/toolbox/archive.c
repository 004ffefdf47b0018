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

static int call_write(const struct tool_job *job, int fd)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(LINE_MAX_BYTES);
    cleanup_json json_t *line = call_pack_line(job);
    int r = line ? json_write(line, &out) : -EINVAL;

    if (r == 0)
        r = buf_add_str(&out, "\n");
    if (r == 0)
        r = write_all(fd, out.data, out.len);
    return r == 0 ? write_all(fd, job->blocks[0].text, job->blocks[0].len) : r;
}

void tool_archive_store(struct tool_job *job)
{
    struct bounded_dir *bounded_dir = &tool_archive_of(job->sandbox)->calls;
    struct bounded_dir_file file = BOUNDED_DIR_FILE_INIT;

    if (bounded_dir_create(bounded_dir, &file) < 0)
        return;
    if (call_write(job, file.fd) < 0)
        bounded_dir_drop(bounded_dir, &file);
    else
        (void)bounded_dir_put(bounded_dir, &file, job->id_hash);
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
    job->mime = text_of(line, "mime", job->mime_text, sizeof(job->mime_text));
    call_unpack_changes(job, json_object_get(line, "changed"));
}

/* Fills in the result if the file is of this call and generation: 1, 0, or ERR_INVALID. */
static int call_unpack(struct tool_job *job, const struct buf *content, struct err *err)
{
    const char *end = content->len ? memchr(content->data, '\n', content->len) : NULL;
    size_t at = end ? (size_t)(end - content->data) + 1 : 0;
    cleanup_json json_t *line = NULL;
    struct err ignored;
    const char *digest, *id;

    if (!end || json_parse_object(content->data, at - 1, &line, &ignored) < 0)
        return 0;
    digest = json_string_value(json_object_get(line, "digest"));
    id = json_string_value(json_object_get(line, "id"));
    if (!digest || !id || strcmp(id, job->call_id) != 0 ||
        number_of(line, "generation") != job->generation ||
        number_of(line, "len") != content->len - at)
        return 0;
    if (job->digest[0] && strcmp(digest, job->digest) != 0)
        return tool_job_refuse_reused_id(job, err);
    if (buf_add(&job->text, content->data + at, content->len - at) < 0)
        return 0;
    call_unpack_line(job, line);
    return 1;
}

int tool_archive_find(struct tool_job *job, struct err *err)
{
    cleanup_close int fd = bounded_dir_open(&tool_archive_of(job->sandbox)->calls, job->id_hash);
    cleanup_with(buf_done) struct buf content = BUF_INIT(ARCHIVE_CALLS_BYTES);
    struct stat info;
    ssize_t n;

    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size > ARCHIVE_CALLS_BYTES ||
        buf_reserve(&content, (size_t)info.st_size) < 0)
        return 0;
    n = read_full(fd, content.data, (size_t)info.st_size);
    if (n < 0)
        return 0;
    content.len = (size_t)n;
    return call_unpack(job, &content, err);
}
