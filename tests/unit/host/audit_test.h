/* What the tests of the audit log share. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "check.h"
#include "host/observe/audit.h"

enum { FILE_BYTES_MAX = 64 << 20, LINE_BYTES_MAX = 64 << 10, PAGE_BYTES = 4096 };

static char scratch[] = "/tmp/holt-audit-test.XXXXXX";
static int state_fd = -EBADF;
static struct audit *audit;

static inline void start(void)
{
    struct err err = { 0 };

    CHECK(audit_open(state_fd, &audit, &err) == 0, "%s", err.msg);
}

static inline void stop(void)
{
    audit_close(audit);
    audit = NULL;
}

static inline void clear(void)
{
    stop();
    (void)unlinkat(state_fd, "audit.jsonl", 0);
    (void)unlinkat(state_fd, "audit.torn", 0);
}

static inline void start_anew(void)
{
    clear();
    start();
}

static inline void add(const char *event, const char *sandbox, json_t *details)
{
    struct err err = { 0 };

    CHECK(audit_add(audit, event, sandbox, details, &err) == 0, "%s", err.msg);
}

static inline void add_numbered(unsigned number)
{
    add("exec", "s1", json_pack("{s:i}", "number", (int)number));
}

/* The content of a file; the next call frees it. */
static inline struct buf *content(const char *name)
{
    static struct buf text = BUF_INIT(FILE_BYTES_MAX);

    buf_done(&text);
    text = (struct buf)BUF_INIT(FILE_BYTES_MAX);
    CHECK(file_read_at(state_fd, name, &text) == 0, "%s", name);
    return &text;
}

static inline void set_content(const char *text)
{
    CHECK(file_create_at(state_fd, "audit.jsonl", 0600, text) == 0);
}

static inline int count_line(const char *line, void *context)
{
    CHECK(!strchr(line, '\n'));
    ++*(unsigned *)context;
    return 0;
}

/* Lines about the sandbox, in a file of which every line fits. */
static inline unsigned lines_about(const char *sandbox, uint64_t *ret_all)
{
    struct err err = { 0 };
    unsigned count = 0;

    CHECK(audit_read(state_fd, sandbox, count_line, &count, ret_all, &err) == 0, "%s", err.msg);
    return count;
}

static inline uint64_t lines(void)
{
    uint64_t all;

    CHECK(lines_about(NULL, &all) == all);
    return all;
}

/* The first line that does not fit is this one. */
static inline void check_bad_line(unsigned line)
{
    struct err err = { 0 };
    unsigned count = 0;
    uint64_t all = 77;
    char named[32];

    CHECK(audit_read(state_fd, "nobody", count_line, &count, &all, &err) == -EIO);
    CHECK(err.kind == ERR_INTERNAL && all == 77 && count == 0);
    (void)snprintf(named, sizeof(named), "line %u ", line);
    CHECK(strstr(err.msg, named), "(%s, not %u)", err.msg, line);
}

/* The content of a log of ten lines, and where each begins; [10] is the end. */
static inline struct buf *ten_lines(char *begins[static 11])
{
    struct buf *text;

    start_anew();
    for (unsigned i = 1; i <= 10; i++)
        add_numbered(i);
    stop();
    CHECK(lines() == 10);
    text = content("audit.jsonl");
    begins[0] = text->data;
    for (unsigned i = 1; i <= 10; i++) {
        begins[i] = strchr(begins[i - 1], '\n');
        CHECK(begins[i]);
        begins[i]++;
    }
    return text;
}

static inline json_t *details_of(size_t len)
{
    cleanup_free char *text = calloc(1, len + 1);

    CHECK(text);
    memset(text, 'x', len);
    return json_pack("{s:s}", "text", text);
}

static inline void scratch_make(void)
{
    CHECK(mkdtemp(scratch));
    state_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(state_fd >= 0);
}

static inline void scratch_remove(void)
{
    start_anew();
    buf_done(content("audit.jsonl"));
    clear();
    (void)close(state_fd);
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0);
}
