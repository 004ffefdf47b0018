// SPDX-License-Identifier: Apache-2.0
/* A disk that loses power: a FUSE filesystem with one file, `disk`, whose writes stay in memory
 * until it is flushed. The image below has only what was flushed.
 *
 * usage: disk IMAGE MOUNTPOINT SEED PERCENT
 *
 * SIGUSR1 cuts the power: of the writes since the last flush, each block of 4 KiB reaches the image
 * with a probability of PERCENT, and the process ends. Everything that still uses the file gets
 * errors. The file `stats` has the number of flushes, and of blocks that wait for one. */
#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, BUCKETS = 1 << 16, STATS_BYTES = 64 };

/* A block that was written and not flushed. */
struct block {
    struct block *below;  /* in the bucket */
    struct block *next;   /* written later */
    struct block *newest; /* NULL: this one is the newest of its number */
    off_t number;
    unsigned char data[BLOCK_BYTES];
};

static struct {
    pthread_mutex_t lock;
    int fd;
    off_t size;
    unsigned seed;
    unsigned percent;
    unsigned long flushes, waiting;
    struct block *buckets[BUCKETS]; /* only the newest of each number */
    struct block *first, **last;    /* all, in the order of the writes */
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct block **bucket_of(off_t number)
{
    struct block **slot = &disk.buckets[(size_t)number % BUCKETS];

    while (*slot && (*slot)->number != number)
        slot = &(*slot)->below;
    return slot;
}

static int block_read(off_t number, void *into)
{
    const struct block *block = *bucket_of(number);

    if (block) {
        memcpy(into, block->data, BLOCK_BYTES);
        return 0;
    }
    return pread(disk.fd, into, BLOCK_BYTES, number * BLOCK_BYTES) == BLOCK_BYTES ? 0 : -EIO;
}

/* Adds a version of a block; part of it may be older data. */
static int block_write(off_t number, size_t at, const char *data, size_t len)
{
    struct block *block = calloc(1, sizeof(*block)), **slot = bucket_of(number);

    if (!block || (len < BLOCK_BYTES && block_read(number, block->data) < 0)) {
        free(block);
        return -EIO;
    }
    memcpy(block->data + at, data, len);
    block->number = number;
    if (*slot) {
        (*slot)->newest = block;
        block->below = (*slot)->below;
    }
    *slot = block;
    *disk.last = block;
    disk.last = &block->next;
    disk.waiting++;
    return 0;
}

static int block_store(const struct block *block)
{
    return pwrite(disk.fd, block->data, BLOCK_BYTES, block->number * BLOCK_BYTES) == BLOCK_BYTES
               ? 0
               : -EIO;
}

/* Moves all blocks to the image, or some of them. */
static int blocks_move(unsigned percent)
{
    int r = 0;

    for (struct block *block = disk.first, *next; block; block = next) {
        next = block->next;
        if (percent == 100 ? !block->newest : rand_r(&disk.seed) % 100U < percent)
            r = block_store(block) < 0 ? -EIO : r;
        free(block);
    }
    memset(disk.buckets, 0, sizeof(disk.buckets));
    disk.first = NULL;
    disk.last = &disk.first;
    disk.waiting = 0;
    return r;
}

static void *power_cut(void *argument)
{
    sigset_t wanted;
    int signal;

    (void)argument;
    (void)sigemptyset(&wanted);
    (void)sigaddset(&wanted, SIGUSR1);
    (void)sigwait(&wanted, &signal);
    (void)pthread_mutex_lock(&disk.lock);
    (void)blocks_move(disk.percent == 100 ? 99 : disk.percent);
    _exit(0);
}

static int is_stats(const char *path)
{
    return strcmp(path, "/stats") == 0;
}

static int disk_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
    (void)info;
    *st = (struct stat){ .st_mode = S_IFREG | 0600, .st_nlink = 1, .st_size = disk.size };
    if (strcmp(path, "/") == 0)
        st->st_mode = S_IFDIR | 0700;
    else if (is_stats(path))
        st->st_size = STATS_BYTES;
    else if (strcmp(path, "/disk") != 0)
        return -ENOENT;
    return 0;
}

static int disk_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t at,
                        struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
    (void)path;
    (void)at;
    (void)info;
    (void)flags;
    (void)fill(buffer, "disk", NULL, 0, 0);
    (void)fill(buffer, "stats", NULL, 0, 0);
    return 0;
}

static int disk_open(const char *path, struct fuse_file_info *info)
{
    info->direct_io = is_stats(path);
    return 0;
}

static int stats_read(char *into, size_t len, off_t at)
{
    char text[STATS_BYTES + 1];
    size_t size;

    (void)snprintf(text, sizeof(text), "%lu %lu\n", disk.flushes, disk.waiting);
    size = strlen(text);
    if ((size_t)at >= size)
        return 0;
    len = len < size - (size_t)at ? len : size - (size_t)at;
    memcpy(into, text + at, len);
    return (int)len;
}

static int disk_read(const char *path, char *into, size_t len, off_t at,
                     struct fuse_file_info *info)
{
    size_t done = 0;
    int r = 0;

    (void)info;
    (void)pthread_mutex_lock(&disk.lock);
    if (is_stats(path)) {
        r = stats_read(into, len, at);
        done = r > 0 ? (size_t)r : 0;
        len = done;
    }
    if (at >= disk.size)
        len = done;
    while (r >= 0 && done < len) {
        unsigned char block[BLOCK_BYTES];
        size_t from = (size_t)((at + (off_t)done) % BLOCK_BYTES);
        size_t part = BLOCK_BYTES - from < len - done ? BLOCK_BYTES - from : len - done;

        r = block_read((at + (off_t)done) / BLOCK_BYTES, block);
        memcpy(into + done, block + from, part);
        done += part;
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return r < 0 ? r : (int)done;
}

static int disk_write(const char *path, const char *data, size_t len, off_t at,
                      struct fuse_file_info *info)
{
    size_t done = 0;
    int r = is_stats(path) ? -EACCES : 0;

    (void)info;
    (void)pthread_mutex_lock(&disk.lock);
    if (at + (off_t)len > disk.size)
        r = -ENOSPC;
    while (r == 0 && done < len) {
        size_t from = (size_t)((at + (off_t)done) % BLOCK_BYTES);
        size_t part = BLOCK_BYTES - from < len - done ? BLOCK_BYTES - from : len - done;

        r = block_write((at + (off_t)done) / BLOCK_BYTES, from, data + done, part);
        done += part;
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return r < 0 ? r : (int)len;
}

static int disk_fsync(const char *path, int is_data_only, struct fuse_file_info *info)
{
    int r;

    (void)path;
    (void)is_data_only;
    (void)info;
    (void)pthread_mutex_lock(&disk.lock);
    r = blocks_move(100);
    disk.flushes++;
    (void)pthread_mutex_unlock(&disk.lock);
    return r;
}

static const struct fuse_operations operations = {
    .getattr = disk_getattr,
    .readdir = disk_readdir,
    .open = disk_open,
    .read = disk_read,
    .write = disk_write,
    .fsync = disk_fsync,
};

int main(int argc, char **argv)
{
    char *arguments[] = { argv[0], (char *)(uintptr_t) "-f", (char *)(uintptr_t) "-s", argv[2],
                          NULL };
    sigset_t blocked;
    pthread_t thread;
    struct stat st;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: disk IMAGE MOUNTPOINT SEED PERCENT\n");
        return 2;
    }
    disk.last = &disk.first;
    disk.fd = open(argv[1], O_RDWR | O_CLOEXEC);
    disk.seed = (unsigned)strtoul(argv[3], NULL, 10);
    disk.percent = (unsigned)strtoul(argv[4], NULL, 10);
    if (disk.fd < 0 || fstat(disk.fd, &st) < 0) {
        perror(argv[1]);
        return 1;
    }
    disk.size = st.st_size / BLOCK_BYTES * BLOCK_BYTES;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    if (pthread_create(&thread, NULL, power_cut, NULL) != 0)
        return 1;
    return fuse_main(4, arguments, &operations, NULL);
}
