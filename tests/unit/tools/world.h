/* Helpers of the tests that call tools as functions, in a temporary directory. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/files/tree.h"
#include "check.h"
#include "tools/tool.h"
#include "wire/file.h"

static char dir[] = "/tmp/holt-tools-test-XXXXXX";
static struct tool_reply reply;

#define TEXT(given)                                                                                \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_TEXT, .text = {(given), strlen(given) }                                       \
    }
#define NUMBER(given)                                                                              \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_NUMBER, .number = (given)                                                     \
    }
#define FLAG(given)                                                                                \
    (struct tool_value)                                                                            \
    {                                                                                              \
        .type = TOOL_FLAG, .number = (given)                                                       \
    }
#define EDIT(old_given, new_given, all_given)                                                      \
    (struct tool_edit)                                                                             \
    {                                                                                              \
        .old_text = { (old_given), strlen(old_given) },                                            \
        .new_text = { (new_given), strlen(new_given) }, .all = (all_given)                         \
    }

static inline void world_open(void)
{
    CHECK(mkdtemp(dir));
    CHECK(chdir(dir) == 0);
    (void)umask(022);
    reply.content.max = TOOL_CONTENT_MAX;
    reply.changed.max = 1 << 20;
}

static inline void world_close(void)
{
    CHECK(chdir("/") == 0);
    CHECK(tree_remove_at(AT_FDCWD, dir) == 0);
    buf_done(&reply.content);
    buf_done(&reply.changed);
}

/* Returns the absolute path of a name, in one of four static buffers. */
static inline const char *in_dir(const char *name)
{
    static char paths[4][PATH_MAX + 64];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static inline const char *run(tool_fn *tool, const struct tool_value *values, size_t count)
{
    struct tool_values all = { .count = count };

    memcpy(all.at, values, count * sizeof(*values));
    buf_clear(&reply.content);
    buf_clear(&reply.changed);
    reply.outcome = (struct tool_outcome){ .flags = 0 };
    tool(&all, &reply);
    return reply.content.data ? reply.content.data : "";
}

/* Runs a tool as the user nobody. */
static inline const char *run_as_nobody(tool_fn *tool, const struct tool_value *values,
                                        size_t count)
{
    enum { NOBODY = 65534 };
    const char *said;

    CHECK(chmod(dir, 0755) == 0 && seteuid(NOBODY) == 0);
    said = run(tool, values, count);
    CHECK(seteuid(0) == 0);
    return said;
}

static inline bool is_error(void)
{
    return reply.outcome.flags & TOOL_IS_ERROR;
}

static inline void put_bytes_into(const char *name, const void *data, size_t len)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len && close(fd) == 0);
}

static inline void put_into(const char *name, const char *text)
{
    put_bytes_into(name, text, strlen(text));
}

/* Returns the content of a small file. */
static inline const char *content_of(const char *name)
{
    static char text[1 << 16];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    CHECK(n >= 0, "(%s)", name);
    text[n] = '\0';
    (void)close(fd);
    return text;
}

/* Returns whether temporary files are left. */
static inline bool has_leftovers(void)
{
    DIR *all = opendir(dir);
    const struct dirent *entry;
    bool has = false;

    CHECK(all);
    while ((entry = readdir(all)))
        has |= strncmp(entry->d_name, ".holt-", 6) == 0;
    (void)closedir(all);
    return has;
}

/* Returns the format with the path of a name for %s. */
static inline const char *about(const char *format, const char *name)
{
    static char text[2 * PATH_MAX];
    const char *at = strstr(format, "%s");

    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - format), format, in_dir(name),
                   at + 2);
    return text;
}

/* Returns the change with this number in the reply as "A /path" or "M /path", or "". */
static inline const char *changed_at(unsigned number)
{
    static char text[PATH_MAX + 8];
    struct file_parser parser = { 0 };
    struct file_piece piece;
    struct file_event event;
    size_t at = 0;

    for (unsigned i = 0; at < reply.changed.len; i++) {
        ssize_t n = file_next(&parser, reply.changed.data + at, reply.changed.len - at, &piece);

        CHECK(n > 0 && file_get_event(&piece, &event));
        at += (size_t)n;
        if (i == number) {
            (void)snprintf(text, sizeof(text), "%c %s", event.kind == FILE_EVENT_CREATE ? 'A' : 'M',
                           event.path);
            return text;
        }
    }
    return "";
}

#define CHECK_REPLY(said, wanted)                                                                  \
    do {                                                                                           \
        const char *said_ = (said);                                                                \
        CHECK(!is_error(), "(%s)", said_);                                                         \
        CHECK_TEXT(said_, (wanted));                                                               \
    } while (0)

#define CHECK_ERROR(said, wanted)                                                                  \
    do {                                                                                           \
        const char *said_ = (said);                                                                \
        CHECK(is_error(), "(%s)", said_);                                                          \
        CHECK_TEXT(said_, (wanted));                                                               \
    } while (0)

#define CHECK_CONTAINS(said, wanted)                                                               \
    do {                                                                                           \
        const char *said_ = (said);                                                                \
        CHECK(strstr(said_, (wanted)), "(says '%s')", said_);                                      \
    } while (0)
