/* Fixture: archives made in memory, hostile ones included, and a store to import them into. */
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "check.h"
#include "store/store.h"
#include "store/template/template.h"

enum { TEST_BYTES_MAX = 4 << 20, TEST_FILES_MAX = 200, BLOB_BYTES_MAX = 1 << 20 };

/* One entry of an archive. Mode 0 means the default of its type. */
struct item {
    const char *path;
    mode_t type; /* 0: S_IFREG */
    mode_t mode;
    const char *text; /* content of a file */
    size_t len;       /* length of text, unless it is a string */
    const char *link; /* target of a symbolic link */
    const char *hard; /* target of a hard link */
    int64_t uid;
    int64_t mtime;
    const char *xattr; /* name; its value is "value" */
};

struct blob {
    char data[BLOB_BYTES_MAX];
    size_t len;
};

static char scratch[64]; /* directory that contains everything */
static int scratch_fd = -1;
static int templates_fd = -1;
static struct store *store;
static uint64_t bytes_max = TEST_BYTES_MAX;
static struct err why;                /* error of the last import */
static struct template_progress told; /* the last report of its progress */

static inline void progress_note(const struct template_progress *progress, void *context)
{
    (void)context;
    told = *progress;
}

static inline void item_write(struct archive *archive, const struct item *item)
{
    struct archive_entry *entry = archive_entry_new();
    size_t len = item->text ? (item->len ? item->len : strlen(item->text)) : 0;
    mode_t type = item->type ? item->type : S_IFREG;

    archive_entry_set_pathname(entry, item->path);
    archive_entry_set_mode(entry, type | (item->mode ? item->mode : type == S_IFDIR ? 0755 : 0644));
    archive_entry_set_uid(entry, item->uid);
    archive_entry_set_gid(entry, item->uid);
    archive_entry_set_mtime(entry, item->mtime ? item->mtime : 1000000000, 0);
    archive_entry_set_size(entry, (la_int64_t)len);
    if (item->link)
        archive_entry_set_symlink(entry, item->link);
    if (item->hard)
        archive_entry_set_hardlink(entry, item->hard);
    if (item->xattr)
        archive_entry_xattr_add_entry(entry, item->xattr, "value", 5);
    if (type == S_IFCHR)
        archive_entry_set_rdev(entry, 0x103);
    CHECK(archive_write_header(archive, entry) == ARCHIVE_OK, "%s", archive_error_string(archive));
    if (len)
        CHECK(archive_write_data(archive, item->text, len) == (la_ssize_t)len);
    archive_entry_free(entry);
}

/* filter is a name of libarchive, or NULL. */
static inline void tar_write(struct blob *blob, const char *filter, const struct item *items,
                             size_t count)
{
    struct archive *archive = archive_write_new();
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before = uselocale(utf8);

    (void)archive_write_set_format_pax(archive);
    if (filter)
        CHECK(archive_write_add_filter_by_name(archive, filter) == ARCHIVE_OK);
    CHECK(archive_write_open_memory(archive, blob->data, sizeof(blob->data), &blob->len) ==
          ARCHIVE_OK);
    for (size_t i = 0; i < count; i++)
        item_write(archive, &items[i]);
    CHECK(archive_write_close(archive) == ARCHIVE_OK, "%s", archive_error_string(archive));
    (void)archive_write_free(archive);
    (void)uselocale(before); /* the import runs without that locale */
    freelocale(utf8);
}

static inline void file_put(const char *name, const void *data, size_t len)
{
    cleanup_close int fd = openat(scratch_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write_all(fd, data, len) == 0, "%s", name);
}

static inline size_t entries_in(int dir_fd, const char *path)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t count = 0;

    CHECK(dir, "%s", path);
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count - 2;
}

/* Imports a path below the scratch directory. In any case nothing may be left behind: no
 * descriptor, and no name in templates/ except that of a success. */
static inline int import_path_as(const char *name, const char *file)
{
    char path[192];
    struct template_source source = { .name = name, .path = path, .progress = progress_note };
    struct template_info info;
    size_t fds = entries_in(AT_FDCWD, "/proc/self/fd");
    size_t templates = entries_in(templates_fd, ".");
    int r;

    (void)snprintf(path, sizeof(path), "%s/%s", scratch, file);
    why = (struct err){ 0 };
    told = (struct template_progress){ 0 };
    r = template_import(store, &source, &info, &why);
    CHECK(entries_in(AT_FDCWD, "/proc/self/fd") == fds, "(a descriptor is left open)");
    CHECK(entries_in(templates_fd, ".") == templates + (r >= 0), "(left behind: %s)", why.msg);
    return r;
}

static inline int import_items(const char *name, const char *filter, const struct item *items,
                               size_t count)
{
    static struct blob blob;

    tar_write(&blob, filter, items, count);
    file_put("archive", blob.data, blob.len);
    return import_path_as(name, "archive");
}

#define IMPORT(name, ...)                                                                          \
    ({                                                                                             \
        const struct item items_[] = { __VA_ARGS__ };                                              \
        import_items(name, NULL, items_, ARRAY_SIZE(items_));                                      \
    })

#define CHECK_IMPORTED(r) CHECK((r) >= 0, "(%s)", why.msg)

/* Checks that the import failed with this kind of error and this text in the message. */
#define CHECK_REFUSED(r, kind_, text)                                                              \
    do {                                                                                           \
        CHECK((r) < 0);                                                                            \
        CHECK(why.kind == (kind_), "(%s: %s)", err_kind_name(why.kind), why.msg);                  \
        CHECK(strstr(why.msg, (text)), "(%s)", why.msg);                                           \
    } while (0)

/* Stats a path in the root of a template; mode 0 means that it does not exist. */
static inline struct stat stat_in(const char *name, const char *path)
{
    char full[256];
    struct stat st = { 0 };

    (void)snprintf(full, sizeof(full), "%s/rootfs/%s", name, path);
    if (fstatat(templates_fd, full, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return (struct stat){ 0 };
    return st;
}

static inline const char *text_in(const char *name, const char *path)
{
    static char text[256];
    char full[256];
    int fd;
    ssize_t n;

    (void)snprintf(full, sizeof(full), "%s/rootfs/%s", name, path);
    fd = openat(templates_fd, full, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0, "%s", full);
    n = read_full(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(fd);
    return text;
}

static inline void forget(const char *name)
{
    struct err err;

    CHECK(template_remove(store, name, &err) == 0, "%s", err.msg);
}

static inline void store_start(void)
{
    char state[96];
    struct store_options options = { .state_dir = state,
                                     .template_bytes_max = bytes_max,
                                     .template_files_max = TEST_FILES_MAX,
                                     .storage = "dir" };
    struct err err;

    (void)snprintf(state, sizeof(state), "%s/state", scratch);
    CHECK(store_open(&options, &store, &err) == 0, "%s", err.msg);
    templates_fd = openat(scratch_fd, "state/templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void store_stop(void)
{
    store_close(store);
    store = NULL;
    templates_fd = fd_close(templates_fd);
}

static inline void scratch_make(void)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(scratch, sizeof(scratch), "%.40s/holt-store-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(scratch), "%s", scratch);
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch_fd >= 0);
}

static inline void scratch_remove(void)
{
    scratch_fd = fd_close(scratch_fd);
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0);
}
