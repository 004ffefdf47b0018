// SPDX-License-Identifier: Apache-2.0
/* Random rules over a random tree: what a process gets is what the rules say. For the file server
 * they are changed again and again while the kernel has names in its cache.
 *
 * VIEW_PROPERTY_ROUNDS=N     lists of rules
 * VIEW_PROPERTY_SEED=N       repeats a run */
#include <dirent.h>
#include <time.h>

#include "kernel/viewfs/view_world.h"
#include "view/rules.h"

enum { ROUNDS_SHORT = 40, PATHS_MAX = 256, PATH_BYTES = 128, RULES_BYTES = 1024, DEPTH = 3 };

static const char *const names[] = { "a", "b", "out", ".env", "key.pem" };
static const char *const patterns[] = { "/**",       "/a/**",     "/b",          "**/.env",
                                        "**/*.pem",  "/*/out/**", "/a/b/*",      "/out/**",
                                        "**/b/**",   "/b/*.pem",  "/a/out/.env", "**/out/*",
                                        "/{a,b}/**", "/?/a" };
static const char *const all_levels[] = { "none", "view", "read", "write" };
static const char *const sealed_levels[] = { "none", "read" };

static struct {
    char path[PATH_BYTES];
    bool is_directory;
} paths[PATHS_MAX];
static size_t path_count;
static struct view_rules *rules;
static unsigned seed;

static unsigned pick(unsigned count)
{
    return (unsigned)rand_r(&seed) % count;
}

static void tree_make(const char *parent, int depth)
{
    for (size_t i = 0; i < ARRAY_SIZE(names) && path_count < PATHS_MAX; i++) {
        char path[PATH_BYTES];
        const bool is_directory = depth < DEPTH && i < 3;

        (void)snprintf(path, sizeof(path), "%.100s/%s", parent, names[i]);
        memcpy(paths[path_count].path, path, sizeof(path));
        paths[path_count++].is_directory = is_directory;
        if (is_directory) {
            lower_directory(path + 1);
            tree_make(path, depth + 1);
        } else {
            lower_file(path + 1, "text");
        }
    }
}

static void rules_make(char text[static RULES_BYTES], const char *const levels[], unsigned count)
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = pick(5) + 1; i > 0; i--)
        len += (size_t)snprintf(text + len, RULES_BYTES - len, "%s=%s@%u\n",
                                patterns[pick(ARRAY_SIZE(patterns))], levels[pick(count)], pick(4));
}

static int open_result(const char *path, int flags)
{
    int fd = openat(world.seen_fd, path + 1, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

static int wanted_of(enum view_level level, enum view_level needed)
{
    if (level >= needed)
        return 0;
    return level == VIEW_NONE ? ENOENT : EACCES;
}

static bool is_listed(const char *path)
{
    char parent[PATH_BYTES];
    const struct dirent *entry = NULL;
    char *name;
    int fd;
    DIR *dir;

    (void)snprintf(parent, sizeof(parent), ".%.120s", path);
    name = strrchr(parent, '/');
    *name++ = '\0';
    fd = openat(world.seen_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    while (dir && (entry = readdir(dir)) && strcmp(entry->d_name, name) != 0)
        ;
    if (dir)
        (void)closedir(dir);
    return entry;
}

#define CHECK_CALL(call, wanted)                                                                   \
    do {                                                                                           \
        const int got_ = (call), wanted_ = (wanted);                                               \
        CHECK(got_ == wanted_, "(%s: %s instead of %s; rules:\n%s)", path, strerror(got_),         \
              strerror(wanted_), text);                                                            \
    } while (0)

static void path_check(const char *path, bool is_directory, const char *text)
{
    const enum view_level level = view_decide_entry(rules, path, is_directory).level;
    char new_path[PATH_BYTES + 8];
    struct stat st;

    CHECK_CALL(fstatat(world.seen_fd, path + 1, &st, 0) < 0 ? errno : 0,
               wanted_of(level, VIEW_VIEW));
    CHECK_CALL(is_listed(path), level > VIEW_NONE);
    if (!is_directory) {
        CHECK_CALL(open_result(path, O_RDONLY), wanted_of(level, VIEW_READ));
        CHECK_CALL(open_result(path, O_RDWR), wanted_of(level, VIEW_WRITE));
        return;
    }
    if (level == VIEW_NONE)
        return;
    (void)snprintf(new_path, sizeof(new_path), "%.120s/new", path);
    CHECK_CALL(open_result(new_path, O_CREAT | O_EXCL | O_WRONLY),
               view_decide(rules, new_path).level == VIEW_WRITE ? 0 : EACCES);
    if (view_decide(rules, new_path).level == VIEW_WRITE)
        CHECK(unlinkat(world.seen_fd, new_path + 1, 0) == 0, "(%s)", strerror(errno));
}

static void rules_check(void *argument)
{
    const char *text = argument;

    for (size_t i = 0; i < path_count; i++)
        path_check(paths[i].path, paths[i].is_directory, text);
}

static unsigned rounds_begin(void)
{
    const char *rounds = getenv("VIEW_PROPERTY_ROUNDS"), *from = getenv("VIEW_PROPERTY_SEED");

    seed = from ? (unsigned)strtoul(from, NULL, 10) : (unsigned)time(NULL);
    (void)printf("VIEW_PROPERTY_SEED=%u\n", seed);
    return rounds ? (unsigned)strtoul(rounds, NULL, 10) : ROUNDS_SHORT;
}

static void the_kernel_answers_as_the_rules_say(void)
{
    const unsigned count = rounds_begin();
    char text[RULES_BYTES] = "/**=write\n";
    struct err err = { 0 };

    world_begin();
    tree_make("", 0);
    world_show(text);
    for (unsigned round = 0; round < count; round++) {
        rules_make(text, all_levels, ARRAY_SIZE(all_levels));
        CHECK(view_rules_parse(text, round + 1, &rules, &err) == 0, "(%s)", err.msg);
        (void)world_set_rules(text);
        rules_check(text);
        view_rules_free(TAKE_PTR(rules));
    }
    world_end();
}

/* Only processes of the sandbox are bound by a mask. */
static void a_mask_answers_as_the_rules_say(void)
{
    const unsigned count = rounds_begin();
    char text[RULES_BYTES];
    struct err err = { 0 };

    for (unsigned round = 0; round < count; round++) {
        world.engine = &view_engines[ARRAY_SIZE(view_engines) - 1];
        world_begin();
        path_count = 0;
        tree_make("", 0);
        rules_make(text, sealed_levels, ARRAY_SIZE(sealed_levels));
        CHECK(view_rules_parse(text, 1, &rules, &err) == 0, "(%s)", err.msg);
        world_show(text);
        sandbox_run(0, rules_check, text);
        view_rules_free(TAKE_PTR(rules));
        world_end();
    }
}

int main(void)
{
    must_be_root();
    RUN(the_kernel_answers_as_the_rules_say);
    RUN(a_mask_answers_as_the_rules_say);
    return 0;
}
