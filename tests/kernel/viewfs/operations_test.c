// SPDX-License-Identifier: Apache-2.0
/* Random programs of file operations over random trees and rules against a model of a filesystem
 * with levels. A program that fails is made as short as possible and printed.
 *
 * VIEW_PROGRAMS=N      programs
 * VIEW_PROGRAM_SEED=N  repeats a run */
#include <dirent.h>
#include <sys/mman.h>
#include <time.h>

#include "kernel/viewfs/view_world.h"
#include "view/rules.h"

enum {
    PROGRAMS = 60,
    STEPS_MAX = 60,
    ENTRIES_MAX = 128,
    PATH_BYTES = 64,
    RULES_MAX = 5,
    LINE_BYTES = 40,
    RULES_BYTES = RULES_MAX * LINE_BYTES,
    DEPTH_MAX = 3,
    MESSAGE_BYTES = 256,
};

static const char *const names[] = { "a", "b", "c.pem" };
static const char *const patterns[] = { "/**",       "/a/**", "/b",      "**/*.pem", "/*/b/**",
                                        "/a/b/*",    "/b/**", "**/b/**", "/b/*.pem", "/a/c.pem",
                                        "/{a,b}/**", "/?/a",  "file:/a", "/a/*/b",   "**/a" };
static const char *const levels[] = { "none", "view", "read", "write", "write", "write" };

enum op {
    STAT,
    LIST,
    READ,
    WRITE,
    CREATE,
    MKDIR,
    UNLINK,
    RMDIR,
    RENAME,
    SWAP,
    LINK,
    CHMOD,
    RULES,
    OPS
};

static const char *const op_names[OPS] = { "stat",  "list",   "read",  "write",  "create",
                                           "mkdir", "unlink", "rmdir", "rename", "exchange",
                                           "link",  "chmod",  "rules" };

struct step {
    enum op op;
    char a[PATH_BYTES], b[PATH_BYTES]; /* "/a/b" */
    char rules[RULES_MAX][LINE_BYTES];
};

struct program {
    unsigned tree; /* which paths there are in the beginning, by bits */
    struct step steps[STEPS_MAX];
    unsigned count;
};

/* What a run, which is a process of its own, has to say. */
static struct report {
    bool failed;
    char message[MESSAGE_BYTES];
} * report;

static unsigned seed;

static unsigned pick(unsigned count)
{
    return (unsigned)rand_r(&seed) % count;
}

/* --- the model -------------------------------------------------------------------------------- */

struct inode {
    bool is_directory, is_lower;
    int content;
};

struct entry {
    char path[PATH_BYTES];
    struct inode *inode;
};

static struct entry entries[ENTRIES_MAX];
static struct inode inodes[ENTRIES_MAX];
static unsigned entry_count, inode_count;
static struct view_rules *rules;

static struct entry *entry_find(const char *path)
{
    for (unsigned i = 0; i < entry_count; i++)
        if (strcmp(entries[i].path, path) == 0)
            return &entries[i];
    return NULL;
}

static void entry_add(const char *path, struct inode *inode)
{
    struct entry *entry = &entries[entry_count++];

    CHECK(entry_count < ENTRIES_MAX && inode_count < ENTRIES_MAX);
    (void)snprintf(entry->path, sizeof(entry->path), "%s", path);
    entry->inode = inode;
}

static struct inode *inode_new(bool is_directory, bool is_lower, int content)
{
    struct inode *inode = &inodes[inode_count++];

    *inode = (struct inode){ is_directory, is_lower, content };
    return inode;
}

static void entry_remove(struct entry *entry)
{
    *entry = entries[--entry_count];
}

static bool is_below(const char *path, const char *directory)
{
    const size_t len = strlen(directory);

    return strncmp(path, directory, len) == 0 && path[len] == '/';
}

static enum view_level level_of(const struct entry *entry)
{
    return view_decide_entry(rules, entry->path, entry->inode->is_directory).level;
}

static bool can_write(const char *path)
{
    return view_decide(rules, path).level == VIEW_WRITE;
}

/* Returns what the path names for a process: NULL if it is hidden, as if it were not there. */
static struct entry *seen(const char *path)
{
    struct entry *entry = entry_find(path);

    return entry && level_of(entry) > VIEW_NONE ? entry : NULL;
}

/* Returns what the directories above a path make of it: 0, ENOENT or ENOTDIR. */
static int above(const char *path)
{
    char part[PATH_BYTES];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        const struct entry *entry;

        (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        entry = seen(part);
        if (!entry)
            return ENOENT;
        if (!entry->inode->is_directory)
            return ENOTDIR;
    }
    return 0;
}

static bool has_below(const char *path)
{
    for (unsigned i = 0; i < entry_count; i++)
        if (is_below(entries[i].path, path))
            return true;
    return false;
}

/* Everything that gets another path must be writable there and here. */
static bool may_move_below(const char *from, const char *to)
{
    char moved[2 * PATH_BYTES];

    for (unsigned i = 0; i < entry_count; i++) {
        if (!is_below(entries[i].path, from))
            continue;
        (void)snprintf(moved, sizeof(moved), "%s%s", to, entries[i].path + strlen(from));
        if (!can_write(entries[i].path) || !can_write(moved))
            return false;
    }
    return true;
}

static int model_existing(const struct step *step, const struct entry **ret)
{
    int r = above(step->a);

    *ret = r == 0 ? seen(step->a) : NULL;
    return r != 0 ? r : *ret ? 0 : ENOENT;
}

static int model_make(const char *path)
{
    int r = above(path);

    if (r != 0)
        return r;
    if (seen(path))
        return EEXIST;
    return can_write(path) ? 0 : EACCES;
}

static int model_open(const struct step *step)
{
    const struct entry *entry;
    int r = model_existing(step, &entry);

    if (r != 0)
        return r;
    if (entry->inode->is_directory)
        return step->op == WRITE ? EISDIR : 0;
    return level_of(entry) >= (step->op == WRITE ? VIEW_WRITE : VIEW_READ) ? 0 : EACCES;
}

static int model_remove(const struct step *step)
{
    const struct entry *entry;
    int r = model_existing(step, &entry);

    if (r != 0)
        return r;
    if (entry->inode->is_directory != (step->op == RMDIR))
        return step->op == RMDIR ? ENOTDIR : EISDIR;
    if (!can_write(step->a))
        return EACCES;
    return has_below(step->a) ? ENOTEMPTY : 0;
}

static int model_rename(const struct step *step)
{
    int r = above(step->a), r2 = above(step->b);
    const struct entry *from = seen(step->a), *to = seen(step->b);

    if (r != 0 || r2 != 0)
        return r != 0 ? r : r2;
    if (!from || (step->op == SWAP && !to))
        return ENOENT;
    if (is_below(step->b, step->a))
        return EINVAL;
    if (is_below(step->a, step->b))
        return step->op == SWAP ? EINVAL : ENOTEMPTY;
    if (strcmp(step->a, step->b) == 0)
        return 0;
    if (step->op == RENAME && to && from->inode->is_directory != to->inode->is_directory)
        return to->inode->is_directory ? EISDIR : ENOTDIR;
    if (!can_write(step->a) || !can_write(step->b) ||
        (from->inode->is_directory && !may_move_below(step->a, step->b)) ||
        (step->op == SWAP && to->inode->is_directory && !may_move_below(step->b, step->a)))
        return EACCES;
    if (step->op == RENAME && to && to->inode->is_directory && has_below(step->b))
        return ENOTEMPTY;
    return 0;
}

static int model_link(const struct step *step)
{
    const struct entry *entry;
    int r = model_existing(step, &entry), r2 = above(step->b);

    if (r != 0 || r2 != 0)
        return r != 0 ? r : r2;
    if (seen(step->b))
        return EEXIST;
    if (entry->inode->is_directory)
        return EPERM;
    return level_of(entry) == VIEW_WRITE && can_write(step->b) ? 0 : EACCES;
}

static int model_answer(const struct step *step)
{
    const struct entry *entry;
    int r;

    switch (step->op) {
    case READ:
    case WRITE:
        return model_open(step);
    case CREATE:
    case MKDIR:
        return model_make(step->a);
    case UNLINK:
    case RMDIR:
        return model_remove(step);
    case RENAME:
    case SWAP:
        return model_rename(step);
    case LINK:
        return model_link(step);
    case STAT:
    case LIST:
    case CHMOD:
    case RULES:
    case OPS:
        break;
    }
    r = model_existing(step, &entry);
    if (r == 0 && step->op == LIST && !entry->inode->is_directory)
        return ENOTDIR;
    return r == 0 && step->op == CHMOD && level_of(entry) < VIEW_WRITE ? EACCES : r;
}

static void names_move(const char *from, const char *to)
{
    char moved[2 * PATH_BYTES];

    for (unsigned i = 0; i < entry_count; i++) {
        if (strcmp(entries[i].path, from) != 0 && !is_below(entries[i].path, from))
            continue;
        (void)snprintf(moved, sizeof(moved), "%s%s", to, entries[i].path + strlen(from));
        CHECK(strlen(moved) < PATH_BYTES);
        memcpy(entries[i].path, moved, strlen(moved) + 1);
    }
}

static void model_move(const struct step *step)
{
    struct entry *to = entry_find(step->b);

    if (strcmp(step->a, step->b) == 0 || (to && to->inode == entry_find(step->a)->inode))
        return; /* two names of one file stay */
    if (step->op == SWAP) {
        names_move(step->a, "/swapping");
        names_move(step->b, step->a);
        names_move("/swapping", step->b);
        return;
    }
    if (to)
        entry_remove(to);
    names_move(step->a, step->b);
}

/* Does what the system call has done. */
static void model_apply(const struct step *step, int number)
{
    switch (step->op) {
    case WRITE:
        entry_find(step->a)->inode->content = number;
        break;
    case CREATE:
    case MKDIR:
        entry_add(step->a, inode_new(step->op == MKDIR, false, 0));
        break;
    case UNLINK:
    case RMDIR:
        entry_remove(entry_find(step->a));
        break;
    case RENAME:
    case SWAP:
        model_move(step);
        break;
    case LINK:
        entry_add(step->b, entry_find(step->a)->inode);
        break;
    case STAT:
    case LIST:
    case READ:
    case CHMOD:
    case RULES:
    case OPS:
        break;
    }
}

/* --- the real thing --------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(report->message, sizeof(report->message), format, args);
    va_end(args);
    report->failed = true;
    world_end();
    _exit(0);
}

static int errno_of(long r)
{
    return r < 0 ? errno : 0;
}

static int real_open(const struct step *step, int number)
{
    const int flags = step->op == WRITE    ? O_WRONLY | O_TRUNC
                      : step->op == CREATE ? O_WRONLY | O_CREAT | O_EXCL
                                           : O_RDONLY;
    int fd = openat(world.seen_fd, step->a + 1, flags | O_CLOEXEC, 0666);
    char text[16] = "";
    const struct entry *entry = entry_find(step->a);

    if (fd < 0)
        return errno;
    if (step->op == WRITE) {
        (void)snprintf(text, sizeof(text), "%d", number);
        CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    } else if (step->op == READ && read(fd, text, sizeof(text) - 1) >= 0 && entry &&
               !entry->inode->is_directory && strtol(text, NULL, 10) != entry->inode->content) {
        fail("%s has '%s' instead of %d", step->a, text, entry->inode->content);
    }
    (void)close(fd);
    return 0;
}

/* Compares a directory with what the model shows of it. */
static int real_list(const char *path)
{
    int fd = openat(world.seen_fd, path[1] ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;
    unsigned there = 0, wanted = 0;
    char name[PATH_BYTES * 2];

    if (!dir)
        return errno;
    while ((found = readdir(dir))) {
        if (found->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "%s/%.40s", path[1] ? path : "", found->d_name);
        there++;
        if (!seen(name))
            fail("%s lists %s", path, found->d_name);
    }
    (void)closedir(dir);
    for (unsigned i = 0; i < entry_count; i++) {
        const char *slash = strrchr(entries[i].path, '/');
        const size_t len = path[1] ? strlen(path) : 0;

        wanted += (size_t)(slash - entries[i].path) == len &&
                  strncmp(entries[i].path, path, len) == 0 && seen(entries[i].path);
    }
    if (there != wanted)
        fail("%s lists %u names instead of %u", path, there, wanted);
    return 0;
}

static int real_answer(const struct step *step, int number)
{
    const int dir = world.seen_fd;
    const char *a = step->a + 1, *b = step->b + 1;
    struct stat st;

    switch (step->op) {
    case READ:
    case WRITE:
    case CREATE:
        return real_open(step, number);
    case LIST:
        return real_list(step->a);
    case MKDIR:
        return errno_of(mkdirat(dir, a, 0777));
    case UNLINK:
        return errno_of(unlinkat(dir, a, 0));
    case RMDIR:
        return errno_of(unlinkat(dir, a, AT_REMOVEDIR));
    case RENAME:
        return errno_of(renameat(dir, a, dir, b));
    case SWAP:
        return errno_of(renameat2(dir, a, dir, b, RENAME_EXCHANGE));
    case LINK:
        return errno_of(linkat(dir, a, dir, b, 0));
    case CHMOD:
        return errno_of(fchmodat(dir, a, 0777, 0));
    case STAT:
    case RULES:
    case OPS:
        break;
    }
    return errno_of(fstatat(dir, a, &st, AT_SYMLINK_NOFOLLOW));
}

/* --- programs --------------------------------------------------------------------------------- */

static void rules_use(const struct step *step, bool is_first)
{
    char text[RULES_BYTES] = "";
    struct err err = { 0 };

    for (unsigned i = 0; i < RULES_MAX; i++)
        (void)strncat(text, step->rules[i], sizeof(text) - strlen(text) - 1);
    view_rules_free(TAKE_PTR(rules));
    CHECK(view_rules_parse(text, 1, &rules, &err) == 0, "(%s: %s)", text, err.msg);
    if (is_first)
        world_show(text);
    else
        (void)world_set_rules(text);
}

/* A directory of a layer below may not be renamed in an overlay. */
static bool may_differ(const struct step *step, int got)
{
    const struct entry *from = entry_find(step->a), *to = entry_find(step->b);

    return (step->op == RENAME || step->op == SWAP) && got == EXDEV &&
           ((from && from->inode->is_directory && from->inode->is_lower) ||
            (step->op == SWAP && to && to->inode->is_directory && to->inode->is_lower));
}

static void tree_make(unsigned tree, const char *parent, int depth)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const bool is_directory = depth < DEPTH_MAX - 1 && i < 2;
        char path[PATH_BYTES];

        (void)snprintf(path, sizeof(path), "%.40s/%s", parent, names[i]);
        if (!(tree >> (entry_count * 7 + i) % 31 & 1))
            continue;
        entry_add(path, inode_new(is_directory, true, is_directory ? 0 : 1));
        if (!is_directory) {
            lower_file(path + 1, "1");
            continue;
        }
        lower_directory(path + 1);
        tree_make(tree, path, depth + 1);
    }
}

static void steps_run(const struct program *program)
{
    for (unsigned i = 1; i < program->count; i++) {
        const struct step *step = &program->steps[i];
        int wanted, got;

        if (step->op == RULES) {
            rules_use(step, false);
            continue;
        }
        wanted = model_answer(step);
        got = real_answer(step, (int)i + 1);
        if (got != wanted && !((wanted == 0 || wanted == ENOTEMPTY) && may_differ(step, got)))
            fail("step %u: %s %s %s: %s instead of %s", i, op_names[step->op], step->a, step->b,
                 strerror(got), strerror(wanted));
        if (got == 0)
            model_apply(step, (int)i + 1);
    }
    (void)real_list("/");
    for (unsigned i = 0; i < entry_count; i++)
        if (entries[i].inode->is_directory && above(entries[i].path) == 0 && seen(entries[i].path))
            (void)real_list(entries[i].path);
}

/* Returns whether the engine and the model agree. */
static bool program_run(const struct program *program)
{
    int status = -1;
    pid_t pid;

    *report = (struct report){ .failed = false };
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        world_begin();
        tree_make(program->tree, "", 0);
        rules_use(&program->steps[0], true);
        steps_run(program);
        world_end();
        view_rules_free(TAKE_PTR(rules));
        (void)fflush(stdout);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (status != 0 && !report->failed)
        (void)snprintf(report->message, sizeof(report->message), "ended with status %d", status);
    return status == 0 && !report->failed;
}

static void path_make(char ret[PATH_BYTES])
{
    size_t len = 0;

    for (unsigned left = 1 + pick(DEPTH_MAX); left > 0; left--)
        len += (size_t)snprintf(ret + len, PATH_BYTES - len, "/%s", names[pick(ARRAY_SIZE(names))]);
}

static void rules_make(struct step *step)
{
    step->op = RULES;
    (void)snprintf(step->rules[0], LINE_BYTES, "/**=%s\n", levels[2 + pick(4)]);
    for (unsigned i = 1; i < RULES_MAX; i++)
        if (pick(3) > 0)
            (void)snprintf(step->rules[i], LINE_BYTES, "%s=%s@%u\n",
                           patterns[pick(ARRAY_SIZE(patterns))], levels[pick(ARRAY_SIZE(levels))],
                           pick(3));
}

static void program_make(struct program *program)
{
    memset(program, 0, sizeof(*program));
    program->tree = pick(1U << 30) | pick(1U << 30);
    program->count = STEPS_MAX;
    rules_make(&program->steps[0]);
    for (unsigned i = 1; i < STEPS_MAX; i++) {
        struct step *step = &program->steps[i];

        step->op = (enum op)pick(OPS);
        path_make(step->a);
        path_make(step->b);
        if (step->op == RULES)
            rules_make(step);
    }
}

static void program_print(const struct program *program)
{
    (void)printf("tree %x\n", program->tree);
    for (unsigned i = 0; i < program->count; i++) {
        const struct step *step = &program->steps[i];

        (void)printf("%u: %s %s %s\n", i, op_names[step->op], step->a, step->b);
        for (unsigned line = 0; line < RULES_MAX; line++)
            (void)printf("%s%s", step->rules[line][0] ? "    " : "", step->rules[line]);
    }
}

/* Tries the program without some of its steps, which must still fail. */
static bool steps_drop(struct program *program, unsigned at, unsigned count)
{
    struct program less = *program;

    if (at + count > less.count)
        return false;
    memmove(&less.steps[at], &less.steps[at + count],
            (less.count - at - count) * sizeof(*less.steps));
    less.count -= count;
    if (program_run(&less))
        return false;
    *program = less;
    return true;
}

static bool line_drop(struct program *program, unsigned step, unsigned line)
{
    struct program less = *program;

    if (!less.steps[step].rules[line][0])
        return false;
    less.steps[step].rules[line][0] = '\0';
    if (program_run(&less))
        return false;
    *program = less;
    return true;
}

static bool tree_drop(struct program *program, unsigned bit)
{
    struct program less = *program;

    less.tree &= ~(1U << bit);
    if (less.tree == program->tree || program_run(&less))
        return false;
    *program = less;
    return true;
}

static void program_shrink(struct program *program)
{
    for (unsigned size = program->count / 2; size > 0; size /= 2)
        for (unsigned at = 1; at + size <= program->count;)
            if (!steps_drop(program, at, size))
                at += size;
    for (unsigned step = 0; step < program->count; step++)
        for (unsigned line = 0; line < RULES_MAX; line++)
            (void)line_drop(program, step, line);
    for (unsigned bit = 0; bit < 31; bit++)
        (void)tree_drop(program, bit);
    (void)program_run(program); /* for its message */
}

static void engine_and_model_agree(void)
{
    static struct program program;
    const char *count_text = getenv("VIEW_PROGRAMS"), *from = getenv("VIEW_PROGRAM_SEED");
    const unsigned count = count_text ? (unsigned)strtoul(count_text, NULL, 10) : PROGRAMS;

    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(report != MAP_FAILED);
    seed = from ? (unsigned)strtoul(from, NULL, 10) : (unsigned)time(NULL);
    for (unsigned i = 0; i < count; i++) {
        const unsigned own = seed;

        program_make(&program);
        if (program_run(&program))
            continue;
        program_shrink(&program);
        program_print(&program);
        CHECK(false, "(VIEW_PROGRAM_SEED=%u VIEW_PROGRAMS=1: %s)", own, report->message);
    }
}

int main(void)
{
    must_be_root();
    RUN(engine_and_model_agree);
    return 0;
}
