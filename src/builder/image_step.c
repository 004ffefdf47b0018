// SPDX-License-Identifier: Apache-2.0
/* The steps of images, which need no program in the image:
 *
 *   EXEC     words, and env, an object
 *   PLACE    [destination, owner, octal mode or "", path...], from, and filesHash, a digest of the
 * files WRITE    [path, owner, octal mode or "", text] ENTER    [directory], absolute AS [user],
 * without a check that it exists
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "builder/source.h"
#include "host/worker/file.h"

enum { PASSWD_BYTES_MAX = 1 << 20, FILE_MODE = 0644, MODE_KEPT = 0x10000 };

DEFINE_CLEANUP(file_call_close, struct file_call *);

/* Who owns what is copied, and its mode. */
struct placement {
    struct build *build;
    uint32_t uid, gid, mode; /* MODE_KEPT */
    struct file_call *in, *out;
    const char *name; /* of the top in the destination; "": its contents only */
};

static bool number_read(const char *text, uint32_t *ret)
{
    uint64_t number;

    if (parse_u64(text, &number) < 0 || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

/* --- exec ------------------------------------------------------------------------------------- */

int step_run_exec(struct build *build, const json_t *step, struct err *err)
{
    size_t count = json_array_size(json_object_get(step, "args"));
    cleanup_free char **argv = xcalloc(count + 1, sizeof(*argv));
    /* USER or USER:GROUP; the group is that of the user. An image may have no /etc/passwd. */
    size_t user_len = strcspn(build->user, ":");
    bool is_root = user_len == 4 && strncmp(build->user, "root", 4) == 0;
    cleanup_free char *user =
        is_root ? xstrdup("0") : xasprintf("%.*s", (int)user_len, build->user);
    const struct build_command command = {
        .text = build_step_arg(step, count - 1),
        .argv = argv,
        .env = json_object_get(step, "env"),
        .user = user,
        .cwd = build->workdir,
        .input_fd = -1,
    };

    for (size_t i = 0; i < count; i++)
        argv[i] = (char *)(uintptr_t)build_step_arg(step, i);
    return build_run(build, &command, err);
}

/* --- files of the build's sandbox ------------------------------------------------------------- */

static int own_ask(struct build *build, const struct file_request *like, struct file_call **ret,
                   struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    struct file_request request = *like;
    int r = build_need_sandbox(build, err);

    request.to = request.after = request.user = request.meta = "";
    if (r == 0)
        r = file_call_open(build->sandbox, -1, false, &call, err);
    if (r == 0)
        r = file_call_send_request(call, &request, err);
    if (r == 0)
        *ret = TAKE_PTR(call);
    return r;
}

static bool own_is_directory(struct build *build, const char *path)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    const struct file_request request = { .type = FILE_STAT, .flags = FILE_FOLLOW, .path = path };
    struct file_answer answer;
    struct err ignored;

    return own_ask(build, &request, &call, &ignored) == 0 &&
           file_call_next(call, &answer, &ignored) > 0 && answer.entry.type == ENTRY_DIRECTORY;
}

static int own_read(struct build *build, const char *path, struct buf *text, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    const struct file_request request = { .type = FILE_READ, .path = path };
    struct file_answer answer;
    int r = own_ask(build, &request, &call, err);

    while (r >= 0 && (r = file_call_next(call, &answer, err)) > 0) {
        if (answer.type == FILE_DATA && buf_add(text, answer.data, answer.len) < 0)
            return err_set(err, ERR_INVALID, "'%s' of the image is too large", path);
    }
    return r;
}

/* Finds NAME:x:ID:... in a file; with ret_group also the number after ID. */
static int name_find(struct build *build, const char *file, const char *name, uint32_t *ret_id,
                     uint32_t *ret_group, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PASSWD_BYTES_MAX);
    size_t len = strlen(name);
    int r = own_read(build, file, &text, err);

    if (r < 0)
        return r;
    for (const char *line = text.data; line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *password = line + len + 1;
        char *end;
        unsigned long id, group;

        if (strncmp(line, name, len) != 0 || line[len] != ':' || !strchr(password, ':'))
            continue;
        id = strtoul(strchr(password, ':') + 1, &end, 10);
        group = *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
        if (*end != ':' || id > UINT32_MAX || group > UINT32_MAX)
            continue;
        *ret_id = (uint32_t)id;
        if (ret_group)
            *ret_group = (uint32_t)group;
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "'%.40s' is not in %s of the image", name, file);
}

/* Reads USER[:GROUP], names or numbers; a number alone is both. */
static int owner_find(struct placement *placement, const char *text, struct err *err)
{
    cleanup_free char *user = xstrdup(text);
    char *group = strchr(user, ':');
    uint32_t number;
    int r = 0;

    if (!*text)
        return 0;
    if (group)
        *group++ = '\0';
    if (number_read(user, &number))
        placement->uid = placement->gid = number;
    else
        r = name_find(placement->build, "/etc/passwd", user, &placement->uid, &placement->gid, err);
    if (r < 0 || !group)
        return r;
    return number_read(group, &placement->gid)
               ? 0
               : name_find(placement->build, "/etc/group", group, &placement->gid, NULL, err);
}

static int placement_begin(struct placement *placement, const json_t *step, struct err *err)
{
    const char *mode = build_step_arg(step, 2);
    int r = build_need_sandbox(placement->build, err);

    placement->mode = *mode ? (uint32_t)strtoul(mode, NULL, 8) : MODE_KEPT;
    return r < 0 ? r : owner_find(placement, build_step_arg(step, 1), err);
}

/* --- place ------------------------------------------------------------------------------------ */

/* Paths begin with the name of the source's top, which gets the name at the destination. */
static bool path_move(const struct placement *placement, const char *path, char ret[PATH_MAX])
{
    const char *rest = strchr(path, '/');

    if (!*placement->name)
        return rest && snprintf(ret, PATH_MAX, "%s", rest + 1) < PATH_MAX;
    return snprintf(ret, PATH_MAX, "%s%s", placement->name, rest ? rest : "") < PATH_MAX;
}

static int entry_place(struct placement *placement, struct file_entry entry, struct err *err)
{
    char path[PATH_MAX], same_as[PATH_MAX];

    if (!path_move(placement, entry.path, path))
        return 0; /* the top of a directory, which is there */
    entry.path = path;
    if (entry.same_as[0] && path_move(placement, entry.same_as, same_as))
        entry.same_as = same_as;
    entry.uid = placement->uid;
    entry.gid = placement->gid;
    if (placement->mode != MODE_KEPT && entry.type != ENTRY_LINK)
        entry.mode = placement->mode;
    if (entry.type != ENTRY_FILE && entry.type != ENTRY_DIRECTORY && entry.type != ENTRY_LINK)
        return 0;
    return file_call_send_entry(placement->out, &entry, err);
}

static int answers_place(struct placement *placement, struct err *err)
{
    struct file_answer answer;
    int r;

    while ((r = file_call_next(placement->in, &answer, err)) > 0) {
        if (answer.type == FILE_TROUBLE)
            r = err_set(err, ERR_INVALID, "cannot read '%.100s'", answer.trouble.path);
        else if (answer.type == FILE_ENTRY)
            r = entry_place(placement, answer.entry, err);
        else if (answer.type == FILE_DATA)
            r = file_call_send_data(placement->out, answer.data, answer.len, err);
        if (r < 0)
            break;
    }
    if (r == 0)
        r = file_call_send_end(placement->out, err);
    return r < 0 ? r : file_call_next(placement->out, &answer, err);
}

static int push_open(struct placement *placement, const char *dir, struct err *err)
{
    const struct file_request request = { .type = FILE_PUSH,
                                          .flags = FILE_PARENTS | FILE_KEEP_OWNER,
                                          .path = *dir ? dir : "/" };

    return own_ask(placement->build, &request, &placement->out, err);
}

/* Splits a path into a directory and the name of a file in it. */
static void path_split(char *path, const char **ret_dir, const char **ret_name)
{
    char *slash = strrchr(path, '/');

    *slash = '\0';
    *ret_dir = path;
    *ret_name = slash + 1;
}

static int path_place(struct placement *placement, const char *from, const char *path,
                      const char *target, struct err *err)
{
    size_t len = strlen(target);
    cleanup_free char *copy = xstrdup(target);
    const char *base = strrchr(path, '/'), *dir = target;
    bool is_directory = false;
    int r = build_source_open(placement->build->sources, from, path, &is_directory, &placement->in,
                              err);

    if (r < 0)
        return r;
    placement->name = is_directory ? "" : base ? base + 1 : path;
    if (!is_directory && target[len - 1] != '/' && !own_is_directory(placement->build, target))
        path_split(copy, &dir, &placement->name);
    r = push_open(placement, dir, err);
    if (r == 0)
        r = answers_place(placement, err);
    file_call_close(TAKE_PTR(placement->in));
    file_call_close(TAKE_PTR(placement->out));
    return r < 0 ? err_wrap(err, "copy '%.60s' to '%.60s'", path, target) : 0;
}

int step_run_place(struct build *build, const json_t *step, struct err *err)
{
    const char *from = json_string_value(json_object_get(step, "from"));
    struct placement placement = { .build = build };
    int r = placement_begin(&placement, step, err);

    for (size_t i = 3; r == 0 && i < json_array_size(json_object_get(step, "args")); i++) {
        r = build_check_cancel(build, err);
        if (r == 0)
            r = path_place(&placement, from ? from : "", build_step_arg(step, i),
                           build_step_arg(step, 0), err);
    }
    return r;
}

int step_run_write(struct build *build, const json_t *step, struct err *err)
{
    struct placement placement = { .build = build };
    cleanup_free char *path = xstrdup(build_step_arg(step, 0));
    const char *dir, *name, *text = build_step_arg(step, 3);
    struct file_entry entry = { .type = ENTRY_FILE,
                                .size = strlen(text),
                                .target = "",
                                .same_as = "",
                                .user_name = "",
                                .group_name = "" };
    struct file_answer answer;
    int r = placement_begin(&placement, step, err);

    if (r < 0)
        return r;
    path_split(path, &dir, &name);
    entry.path = name;
    entry.uid = placement.uid;
    entry.gid = placement.gid;
    entry.mode = placement.mode == MODE_KEPT ? FILE_MODE : placement.mode;
    r = push_open(&placement, dir, err);
    if (r == 0)
        r = file_call_send_entry(placement.out, &entry, err);
    if (r == 0)
        r = file_call_send_data(placement.out, text, strlen(text), err);
    if (r == 0)
        r = file_call_send_end(placement.out, err);
    if (r == 0)
        r = file_call_next(placement.out, &answer, err);
    file_call_close(placement.out);
    return r < 0 ? err_wrap(err, "write '%.80s'", build_step_arg(step, 0)) : 0;
}

/* --- where and as whom ------------------------------------------------------------------------ */

int step_run_enter(struct build *build, const json_t *step, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    const struct file_request request = {
        .type = FILE_MKDIR, .flags = FILE_PARENTS, .mode = 0755, .path = build_step_arg(step, 0)
    };
    struct file_answer answer;
    int r = own_ask(build, &request, &call, err);

    if (r == 0)
        r = file_call_next(call, &answer, err);
    return r < 0 ? r : 0;
}
