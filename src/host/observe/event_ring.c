// SPDX-License-Identifier: Apache-2.0
#include "host/observe/event_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/core/reactor.h"

#define SEQ_FILE "events.seq"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

enum {
    PAGE_BYTES = 4096,
    BOOT_ID_SIZE = 40,
    CRASH_SKIP = 1 << 20, /* more than there can be before the kernel writes the page out */
};

/* The page: which life of the machine wrote it, and the last number. */
struct page {
    char boot_id[BOOT_ID_SIZE];
    uint64_t seq;
};

struct event_reader {
    struct event_ring *ring;
    struct event_reader *next; /* this and all below under the ring's lock */
    uint64_t seq;              /* the last that was read, or passed over */
    uint64_t types;
    char *sandbox;
    bool is_asleep;
    int event_fd; /* written when it is asleep and something has come for it */
};

struct event_ring {
    struct page *page;

    struct lock lock; /* over all below; nothing is taken inside it */
    uint64_t seq;
    struct event *events[EVENT_RING_COUNT]; /* by number */
    uint64_t first;                         /* number of the oldest, if count is not 0 */
    size_t count;
    size_t bytes;
    struct event_reader *readers;
    bool is_shut;
};

void event_unref(struct event *event)
{
    if (event && atomic_fetch_sub(&event->refs, 1) == 1)
        free(event);
}

static void ring_close_slot(struct event_ring **ring)
{
    event_ring_close(*ring);
}

static void read_boot_id(char ret[static BOOT_ID_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PAGE_BYTES);

    memset(ret, 0, BOOT_ID_SIZE);
    if (file_read_at(AT_FDCWD, BOOT_ID_FILE, &text) == 0 && text.len > 0)
        (void)snprintf(ret, BOOT_ID_SIZE, "%.36s", text.data);
}

/* The file is written whole once, so that a full disk shows now and not as SIGBUS later. */
static int page_map(int state_fd, struct page **ret)
{
    static const char zeros[PAGE_BYTES];
    cleanup_close int fd =
        openat(state_fd, SEQ_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    void *page;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size != PAGE_BYTES)
        r = pwrite_all(fd, zeros, sizeof(zeros), 0);
    if (r < 0)
        return r;
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    *ret = page;
    return 0;
}

int event_ring_open(int state_fd, struct event_ring **ret, struct err *err)
{
    cleanup_with(ring_close_slot) struct event_ring *ring = xcalloc(1, sizeof(*ring));
    char boot_id[BOOT_ID_SIZE];
    int r;

    lock_init(&ring->lock, LOCK_EVENTS);
    r = page_map(state_fd, &ring->page);
    if (r < 0)
        return err_sys(err, r, "map " SEQ_FILE " in the state directory");
    read_boot_id(boot_id);
    ring->seq = ring->page->seq;
    if (ring->seq > 0 && memcmp(ring->page->boot_id, boot_id, sizeof(boot_id)) != 0)
        ring->seq += CRASH_SKIP;
    ring->page->seq = ring->seq;
    memcpy(ring->page->boot_id, boot_id, sizeof(boot_id));
    *ret = TAKE_PTR(ring);
    return 0;
}

void event_ring_close(struct event_ring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; i < EVENT_RING_COUNT; i++)
        event_unref(ring->events[i]);
    if (ring->page)
        (void)munmap(ring->page, PAGE_BYTES);
    lock_destroy(&ring->lock);
    free(ring);
}

static size_t size_of(const struct event *event)
{
    return sizeof(*event) + event->len + 1;
}

static struct event *event_make(const struct event_news *news)
{
    const char *fields = news->fields ? news->fields : "{}";
    size_t len = strlen(fields);
    struct event *event;

    if (len > EVENT_FIELDS_MAX) {
        fields = "{}";
        len = strlen(fields);
    }
    event = xcalloc(1, sizeof(*event) + len + 1);
    atomic_init(&event->refs, 1);
    event->type = news->type;
    event->len = len;
    memcpy(event->fields, fields, len);
    (void)snprintf(event->sandbox, sizeof(event->sandbox), "%s",
                   news->sandbox ? news->sandbox : "");
    (void)snprintf(event->name, sizeof(event->name), "%s", news->name ? news->name : "");
    return event;
}

/* Locked. */
static void drop_oldest(struct event_ring *ring)
{
    struct event **slot = &ring->events[ring->first % EVENT_RING_COUNT];

    ring->bytes -= size_of(*slot);
    event_unref(*slot);
    *slot = NULL;
    ring->first++;
    ring->count--;
}

static bool is_wanted(const struct event_reader *reader, const struct event *event)
{
    if (!(reader->types >> event->type & 1))
        return false;
    return !reader->sandbox || strcmp(reader->sandbox, event->sandbox) == 0 ||
           (event->name[0] && strcmp(reader->sandbox, event->name) == 0);
}

/* Locked. */
static void wake(struct event_reader *reader)
{
    const uint64_t one = 1;

    if (!reader->is_asleep)
        return;
    reader->is_asleep = false;
    (void)!write(reader->event_fd, &one, sizeof(one));
}

void event_ring_add(struct event_ring *ring, const struct event_news *news)
{
    struct event *event = event_make(news);

    lock_take(&ring->lock);
    event->seq = ++ring->seq;
    event->time_ms = clock_wall_ms();
    ring->page->seq = ring->seq;
    while (ring->count == EVENT_RING_COUNT ||
           (ring->count > 0 && ring->bytes + size_of(event) > EVENT_RING_BYTES))
        drop_oldest(ring);
    if (ring->count++ == 0)
        ring->first = event->seq;
    ring->bytes += size_of(event);
    ring->events[event->seq % EVENT_RING_COUNT] = event;
    for (struct event_reader *reader = ring->readers; reader; reader = reader->next)
        if (is_wanted(reader, event))
            wake(reader);
    lock_release(&ring->lock);
}

void event_ring_shut(struct event_ring *ring)
{
    lock_take(&ring->lock);
    ring->is_shut = true;
    for (struct event_reader *reader = ring->readers; reader; reader = reader->next)
        wake(reader);
    lock_release(&ring->lock);
}

uint64_t event_ring_last(struct event_ring *ring)
{
    uint64_t seq;

    lock_take(&ring->lock);
    seq = ring->seq;
    lock_release(&ring->lock);
    return seq;
}

/* Locked. The number before the first event that is to be read. */
static uint64_t begin_at(const struct event_ring *ring, const struct event_reader_spec *spec)
{
    uint64_t seq = ring->seq;

    if (spec->start == EVENT_BEHIND_SEQ)
        return spec->value;
    if (spec->start == EVENT_FROM_NOW)
        return seq;
    while (ring->count > 0 && seq >= ring->first &&
           ring->events[seq % EVENT_RING_COUNT]->time_ms >= spec->value)
        seq--;
    return seq;
}

int event_reader_open(struct event_ring *ring, const struct event_reader_spec *spec,
                      struct event_reader **ret, struct err *err)
{
    struct event_reader *reader;
    uint64_t last = event_ring_last(ring);
    int fd;

    if (spec->start == EVENT_BEHIND_SEQ && spec->value > last)
        return err_set(err, ERR_INVALID, "the last event is %llu, there is none %llu yet",
                       (unsigned long long)last, (unsigned long long)spec->value);
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return err_sys(err, -errno, "make an event descriptor");
    reader = xcalloc(1, sizeof(*reader));
    reader->ring = ring;
    reader->event_fd = fd;
    reader->types = spec->types;
    reader->sandbox = spec->sandbox ? xstrdup(spec->sandbox) : NULL;
    lock_take(&ring->lock);
    reader->seq = begin_at(ring, spec);
    reader->next = ring->readers;
    ring->readers = reader;
    lock_release(&ring->lock);
    *ret = reader;
    return 0;
}

void event_reader_close(struct event_reader *reader)
{
    struct event_reader **slot;

    if (!reader)
        return;
    lock_take(&reader->ring->lock);
    slot = &reader->ring->readers;
    while (*slot != reader)
        slot = &(*slot)->next;
    *slot = reader->next;
    lock_release(&reader->ring->lock);
    (void)fd_close(reader->event_fd);
    free(reader->sandbox);
    free(reader);
}

/* Locked. The number of the oldest event that can still be read, or of the next one. */
static uint64_t oldest_of(const struct event_ring *ring)
{
    return ring->count > 0 ? ring->first : ring->seq + 1;
}

/* Locked, and nothing is lost. Passes over what is not wanted; NULL when there is nothing more. */
static struct event *find_next(struct event_reader *reader)
{
    const struct event_ring *ring = reader->ring;

    while (reader->seq < ring->seq) {
        struct event *event = ring->events[(reader->seq + 1) % EVENT_RING_COUNT];

        if (is_wanted(reader, event))
            return event;
        reader->seq++;
    }
    return NULL;
}

struct event *event_reader_take(struct event_reader *reader, uint64_t *ret_lost)
{
    struct event_ring *ring = reader->ring;
    struct event *event;
    uint64_t oldest;

    *ret_lost = 0;
    lock_take(&ring->lock);
    oldest = oldest_of(ring);
    if (reader->seq + 1 < oldest) {
        *ret_lost = oldest - reader->seq - 1;
        reader->seq = oldest - 1;
    }
    event = find_next(reader);
    if (event) {
        atomic_fetch_add(&event->refs, 1);
        reader->seq = event->seq;
    }
    lock_release(&ring->lock);
    return event;
}

/* Whether it is to wait: then it is woken. -ESHUTDOWN when there is nothing to wait for. */
static int fall_asleep(struct event_reader *reader)
{
    struct event_ring *ring = reader->ring;
    uint64_t count;
    int r = 0;

    lock_take(&ring->lock);
    (void)!read(reader->event_fd, &count, sizeof(count)); /* of what it has read since */
    if (reader->seq + 1 < oldest_of(ring) || find_next(reader))
        r = 1;
    else if (ring->is_shut)
        r = -ESHUTDOWN;
    else
        reader->is_asleep = true;
    lock_release(&ring->lock);
    return r;
}

int event_reader_wait(struct event_reader *reader, int watch_fd, int timeout_ms)
{
    struct pollfd fds[2] = {
        { .fd = reader->event_fd, .events = POLLIN },
        { .fd = watch_fd, .events = POLLRDHUP },
    };
    int r = fall_asleep(reader);

    if (r != 0)
        return r < 0 ? r : 0;
    r = poll(fds, ARRAY_SIZE(fds), timeout_ms);
    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    if (r == 0)
        return -ETIMEDOUT;
    return fds[0].revents ? 0 : -ECANCELED; /* what has come counts first */
}
