// SPDX-License-Identifier: Apache-2.0
#include "store/import/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "store/import/image_internal.h"
#include "store/import/import.h"
#include "store/store_internal.h"

#define BLOBS "blobs/sha256"

enum { RANDOM_BYTES = 6 };

int blobs_open(struct store *store, const char *owner, int *ret_fd, struct err *err)
{
    cleanup_close int images_fd = -EBADF, owner_fd = -EBADF, blobs_fd = -EBADF, sha_fd = -EBADF;

    if (store_subdir(store->dir_fd, "images", &images_fd, err) < 0 ||
        store_subdir(images_fd, owner, &owner_fd, err) < 0 ||
        store_subdir(owner_fd, "blobs", &blobs_fd, err) < 0 ||
        store_subdir(blobs_fd, "sha256", &sha_fd, err) < 0)
        return err_wrap(err, "the blobs of images");
    *ret_fd = TAKE_FD(owner_fd);
    return 0;
}

/* A blob that is used again must not be the next that blobs_prune removes. */
static bool blob_exists(int images_fd, const char *path)
{
    const struct timespec times[] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };

    return utimensat(images_fd, path, times, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens the file of a blob that no other pull writes to. */
static int part_open(int images_fd, const char *hex, struct blob *blob)
{
    char digits[HEX_SIZE(RANDOM_BYTES)];
    int fd;

    (void)snprintf(blob->part, sizeof(blob->part), "%.*s.part", DIGEST_HEX_LEN, hex);
    for (;;) {
        char name[sizeof(blob->part) + sizeof(BLOBS)];

        (void)snprintf(name, sizeof(name), BLOBS "/%s", blob->part);
        fd = openat(images_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        (void)close(fd);
        if (random_hex(digits, RANDOM_BYTES) < 0)
            return -EIO;
        (void)snprintf(blob->part, sizeof(blob->part), "%.*s.%s.part", DIGEST_HEX_LEN, hex, digits);
    }
}

static int space_check(int images_fd, uint64_t bytes, struct err *err)
{
    struct statvfs space;
    uint64_t free_bytes;

    if (fstatvfs(images_fd, &space) < 0)
        return err_sys(err, -errno, "read the free space");
    free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    if (bytes <= free_bytes)
        return 0;
    return err_refuse(err, CAUSE_NO_SPACE,
                      "the image needs %" PRIu64 " MiB more; the disk of the state directory has "
                      "%" PRIu64 " MiB",
                      bytes >> 20, free_bytes >> 20);
}

int blob_begin(int images_fd, const char *digest, uint64_t bytes, struct blob *ret, struct err *err)
{
    struct blob blob = { .fd = -1 };
    char path[IMAGE_BLOB_PATH_MAX];
    struct stat st;
    int r = image_blob_path(digest, path, err);

    if (r < 0)
        return r;
    (void)snprintf(blob.digest, sizeof(blob.digest), "%s", digest);
    if (blob_exists(images_fd, path)) {
        *ret = blob;
        return 0;
    }
    r = space_check(images_fd, bytes, err);
    if (r < 0)
        return r;
    blob.fd = part_open(images_fd, strchr(blob.digest, ':') + 1, &blob);
    if (blob.fd < 0)
        return import_error(err, blob.fd, "open blob", digest);
    blob.is_resumed = fstat(blob.fd, &st) == 0 && st.st_size > 0;
    *ret = blob;
    return 0;
}

int blob_accept(int images_fd, struct blob *blob, struct err *err)
{
    char path[IMAGE_BLOB_PATH_MAX], part[sizeof(blob->part) + sizeof(BLOBS)];
    char hex[DIGEST_HEX_LEN + 1];
    int r = image_blob_path(blob->digest, path, err);

    if (r < 0)
        return r;
    r = digest_file(blob->fd, hex);
    if (r < 0)
        return import_error(err, r, "read blob", blob->digest);
    if (strcmp(hex, strchr(blob->digest, ':') + 1) != 0) {
        if (ftruncate(blob->fd, 0) < 0)
            return import_error(err, -errno, "empty blob", blob->digest);
        if (blob->is_resumed) {
            blob->is_resumed = false;
            return 0;
        }
        return err_set(err, ERR_INVALID, "blob %.19s is damaged: its content has another digest",
                       blob->digest);
    }
    /* A name without its bytes would be a damaged blob after a power failure. */
    if (fdatasync(blob->fd) < 0)
        return import_error(err, -errno, "write blob", blob->digest);
    fault_point("pull.fetched");
    (void)snprintf(part, sizeof(part), BLOBS "/%s", blob->part);
    if (renameat(images_fd, part, images_fd, path) < 0)
        return import_error(err, -errno, "name blob", blob->digest);
    blob->fd = fd_close(blob->fd);
    return 1;
}

void blob_end(int images_fd, struct blob *blob)
{
    char part[sizeof(blob->part) + sizeof(BLOBS)];
    struct stat st;

    if (blob->fd < 0)
        return;
    (void)snprintf(part, sizeof(part), BLOBS "/%s", blob->part);
    /* One with a name of its own is never found again. */
    if ((fstat(blob->fd, &st) == 0 && st.st_size == 0) || strlen(blob->part) > DIGEST_HEX_LEN + 5)
        (void)unlinkat(images_fd, part, 0);
    blob->fd = fd_close(blob->fd);
}

int blob_new(int images_fd, int *ret_fd, struct err *err)
{
    int fd = openat(images_fd, BLOBS, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return import_error(err, -errno, "make", "a blob");
    *ret_fd = fd;
    return 0;
}

int blob_name(int images_fd, int fd, const char *digest, struct err *err)
{
    char path[IMAGE_BLOB_PATH_MAX], self[32];
    int r = image_blob_path(digest, path, err);

    if (r < 0 || blob_exists(images_fd, path))
        return r;
    if (fdatasync(fd) < 0)
        return import_error(err, -errno, "write blob", digest);
    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, images_fd, path, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return import_error(err, -errno, "name blob", digest);
    return 0;
}

int blob_open(int images_fd, const char *digest, int *ret_fd, struct err *err)
{
    char path[IMAGE_BLOB_PATH_MAX];
    int r = image_blob_path(digest, path, err);

    if (r < 0)
        return r;
    (void)blob_exists(images_fd, path);
    return image_blob_open(images_fd, digest, ret_fd, err);
}

/* --- prune ------------------------------------------------------------------------------------ */

struct blob_file {
    char name[DIGEST_HEX_LEN + 32];
    uint64_t bytes;
    struct timespec used;
};

struct blob_files {
    int fd;
    struct blob_file *items;
    size_t count;
    uint64_t bytes;
};

static void files_done(struct blob_files *files)
{
    (void)fd_close(files->fd);
    free(files->items);
}

static int file_note(void *context, const char *name)
{
    struct blob_files *files = context;
    struct blob_file *file;
    struct stat st;

    if (fstatat(files->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    files->items = xreallocarray(files->items, files->count + 1, sizeof(*files->items));
    file = &files->items[files->count++];
    *file = (struct blob_file){ .bytes = (uint64_t)st.st_blocks * 512, .used = st.st_mtim };
    (void)snprintf(file->name, sizeof(file->name), "%s", name);
    files->bytes += file->bytes;
    return 0;
}

static int file_compare(const void *a, const void *b)
{
    const struct timespec *one = &((const struct blob_file *)a)->used;
    const struct timespec *two = &((const struct blob_file *)b)->used;

    if (one->tv_sec != two->tv_sec)
        return one->tv_sec < two->tv_sec ? -1 : 1;
    return one->tv_nsec < two->tv_nsec ? -1 : one->tv_nsec > two->tv_nsec;
}

/* Returns whether a pull holds the file. */
static bool file_is_held(int dir_fd, const char *name)
{
    cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static int files_list(int images_fd, struct blob_files *ret, struct err *err)
{
    int r;

    ret->fd = openat(images_fd, BLOBS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = ret->fd < 0 ? -errno : store_each_name(ret->fd, file_note, ret);
    return r < 0 ? err_sys(err, r, "list the blobs of images") : 0;
}

int blobs_prune(int images_fd, uint64_t max_bytes, uint64_t *ret_removed, struct err *err)
{
    cleanup_with(files_done) struct blob_files files = { .fd = -EBADF };
    int r = files_list(images_fd, &files, err);

    *ret_removed = 0;
    if (r < 0)
        return r;
    if (files.count > 1)
        qsort(files.items, files.count, sizeof(*files.items), file_compare);
    for (size_t i = 0; i < files.count && files.bytes > max_bytes; i++) {
        if (file_is_held(files.fd, files.items[i].name) ||
            unlinkat(files.fd, files.items[i].name, 0) < 0)
            continue;
        files.bytes -= files.items[i].bytes;
        *ret_removed += files.items[i].bytes;
    }
    return 0;
}

/* Returns whether the file is as it was when it was listed, and no pull holds it. */
static bool file_is_idle(int dir_fd, const struct blob_file *file)
{
    struct stat st;

    return fstatat(dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_mtim.tv_sec == file->used.tv_sec && st.st_mtim.tv_nsec == file->used.tv_nsec &&
           !file_is_held(dir_fd, file->name);
}

int blobs_remove(int images_fd, const struct blobs_sweep *sweep, uint64_t *ret_removed,
                 struct err *err)
{
    cleanup_with(files_done) struct blob_files files = { .fd = -EBADF };
    int r = files_list(images_fd, &files, err);
    time_t before = time(NULL) - (time_t)(sweep->older_ms / 1000);

    *ret_removed = 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < files.count; i++) {
        const struct blob_file *file = &files.items[i];

        if (file->used.tv_sec > before || sweep->is_kept(sweep->context, file->name) ||
            !file_is_idle(files.fd, file))
            continue;
        if (sweep->is_dry || unlinkat(files.fd, file->name, 0) == 0)
            *ret_removed += file->bytes;
    }
    return 0;
}
