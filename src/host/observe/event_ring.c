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

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/core/reactor.h"

#define SEQ_FILE "events.seq"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

enum {
    PAGE_BYTES = 4096,
    BOOT_ID_SIZE = 40,
    CRASH_SKIP = 1 << 20, /* more events than fit between two writebacks of the page */
};

/* The page: the boot that wrote it, and the last number. */
struct page {
    char boot_id[BOOT_ID_SIZE];
    uint64_t seq;
};

struct event_reader {
    struct event_ring *ring;
    struct event_reader *next; /* this and the fields below: under the ring's lock */
    uint64_t seq;              /* the last one that was read or skipped */
    event_set types;
    char *sandbox;
    bool is_asleep;
    int event_fd; /* signalled when a waiting reader has something to read */
};

struct event_ring {
    struct page *page; /* NULL: of an owner */
    uint64_t base;     /* the number before the first one */
    size_t capacity;
    size_t bytes_max;

    struct lock lock; /* protects all fields below; no other lock is taken under it */
    uint64_t seq;
    struct event **events; /* indexed by number */
    uint64_t first;        /* number of the oldest event, if count is not 0 */
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

DEFINE_CLEANUP(event_ring_close, struct event_ring *);

static void read_boot_id(char ret[static BOOT_ID_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PAGE_BYTES);

    memset(ret, 0, BOOT_ID_SIZE);
    if (file_read_at(AT_FDCWD, BOOT_ID_FILE, &text) == 0 && text.len > 0)
        (void)snprintf(ret, BOOT_ID_SIZE, "%.36s", text.data);
}

/* Writes the whole file once, so that a full disk fails here and not later with SIGBUS. */
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

static struct event_ring *ring_make(size_t capacity, size_t bytes_max)
{
    struct event_ring *ring = xcalloc(1, sizeof(*ring));

    lock_init(&ring->lock, LOCK_EVENTS);
    ring->capacity = capacity;
    ring->bytes_max = bytes_max;
    ring->events = xcalloc(capacity, sizeof(struct event *));
    return ring;
}

struct event_ring *event_ring_new(void)
{
    struct event_ring *ring = ring_make(OWNER_RING_COUNT, OWNER_RING_BYTES);

    ring->base = ring->seq = clock_wall_ms() * 1000;
    return ring;
}

int event_ring_open(int state_fd, struct event_ring **ret, struct err *err)
{
    cleanup_with(event_ring_close_slot) struct event_ring *ring =
        ring_make(EVENT_RING_COUNT, EVENT_RING_BYTES);
    char boot_id[BOOT_ID_SIZE];
    int r;

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
    for (size_t i = 0; i < ring->capacity; i++)
        event_unref(ring->events[i]);
    if (ring->page)
        (void)munmap(ring->page, PAGE_BYTES);
    free(ring->events);
    lock_destroy(&ring->lock);
    free(ring);
}

static size_t text_size(const char *text)
{
    return (text ? strlen(text) : 0) + 1;
}

/* Copies a text (NULL: "") to *at, which moves behind it, and returns the copy. */
static const char *text_put(char **at, const char *text)
{
    char *copy = *at;

    memcpy(copy, text ? text : "", text_size(text));
    *at += text_size(text);
    return copy;
}

struct event *event_new(const struct event_content *content)
{
    const char *fields = content->fields ? content->fields : "{}";
    struct event *event;
    size_t size;
    char *at;

    if (strlen(fields) > EVENT_FIELDS_MAX)
        fields = "{}";
    size = sizeof(*event) + text_size(content->owner) + text_size(content->sandbox) +
           text_size(content->name) + text_size(fields);
    event = xcalloc(1, size);
    atomic_init(&event->refs, 1);
    event->type = content->type;
    event->time_ms = clock_wall_ms();
    event->size = size;
    at = event->texts;
    event->owner = text_put(&at, content->owner);
    event->sandbox = text_put(&at, content->sandbox);
    event->name = text_put(&at, content->name);
    event->fields = text_put(&at, fields);
    event->len = strlen(fields);
    return event;
}

/* The caller holds the lock. */
static void ring_drop_oldest(struct event_ring *ring)
{
    struct event **slot = &ring->events[ring->first % ring->capacity];

    ring->bytes -= (*slot)->size;
    event_unref(*slot);
    *slot = NULL;
    ring->first++;
    ring->count--;
}

static bool reader_matches(const struct event_reader *reader, const struct event *event)
{
    if (!(reader->types >> event->type & 1))
        return false;
    return !reader->sandbox || strcmp(reader->sandbox, event->sandbox) == 0 ||
           (event->name[0] && strcmp(reader->sandbox, event->name) == 0);
}

/* The caller holds the lock. */
static void reader_wake(struct event_reader *reader)
{
    const uint64_t one = 1;

    if (!reader->is_asleep)
        return;
    reader->is_asleep = false;
    (void)!write(reader->event_fd, &one, sizeof(one));
}

void event_ring_add(struct event_ring *ring, struct event *event)
{
    atomic_fetch_add(&event->refs, 1);
    lock_take(&ring->lock);
    ring->seq++;
    if (ring->page)
        ring->page->seq = ring->seq;
    while (ring->count == ring->capacity ||
           (ring->count > 0 && ring->bytes + event->size > ring->bytes_max))
        ring_drop_oldest(ring);
    if (ring->count++ == 0)
        ring->first = ring->seq;
    ring->bytes += event->size;
    ring->events[ring->seq % ring->capacity] = event;
    for (struct event_reader *reader = ring->readers; reader; reader = reader->next)
        if (reader_matches(reader, event))
            reader_wake(reader);
    lock_release(&ring->lock);
}

bool event_ring_has_readers(struct event_ring *ring)
{
    bool has_readers;

    lock_take(&ring->lock);
    has_readers = ring->readers;
    lock_release(&ring->lock);
    return has_readers;
}

void event_ring_shut(struct event_ring *ring)
{
    lock_take(&ring->lock);
    ring->is_shut = true;
    for (struct event_reader *reader = ring->readers; reader; reader = reader->next)
        reader_wake(reader);
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

/* Returns the number before the first event to read. The caller holds the lock. */
static uint64_t reader_start_seq(const struct event_ring *ring,
                                 const struct event_reader_spec *spec)
{
    uint64_t seq = ring->seq;

    if (spec->start == EVENT_BEHIND_SEQ && spec->value == 0)
        return ring->base;
    if (spec->start == EVENT_BEHIND_SEQ)
        return spec->value;
    if (spec->start == EVENT_FROM_NOW)
        return seq;
    while (ring->count > 0 && seq >= ring->first &&
           ring->events[seq % ring->capacity]->time_ms >= spec->value)
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
        return err_set(err, ERR_INVALID, "the last event is %llu, event %llu does not exist yet",
                       (unsigned long long)last, (unsigned long long)spec->value);
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return err_sys(err, -errno, "create an eventfd");
    reader = xcalloc(1, sizeof(*reader));
    reader->ring = ring;
    reader->event_fd = fd;
    reader->types = spec->types;
    reader->sandbox = spec->sandbox ? xstrdup(spec->sandbox) : NULL;
    lock_take(&ring->lock);
    reader->seq = reader_start_seq(ring, spec);
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

/* Returns the number of the oldest event that can still be read, or of the next one. The caller
 * holds the lock. */
static uint64_t ring_oldest(const struct event_ring *ring)
{
    return ring->count > 0 ? ring->first : ring->seq + 1;
}

/* Returns the next matching event and skips others; NULL when there is none. No event must have
 * been lost. The caller holds the lock. */
static struct event *reader_find_next(struct event_reader *reader)
{
    const struct event_ring *ring = reader->ring;

    while (reader->seq < ring->seq) {
        struct event *event = ring->events[(reader->seq + 1) % ring->capacity];

        if (reader_matches(reader, event))
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
    oldest = ring_oldest(ring);
    if (reader->seq + 1 < oldest) {
        /* How many an owner had before its ring is not known: one at least. */
        *ret_lost = reader->seq < ring->base ? 1 : oldest - reader->seq - 1;
        reader->seq = oldest - 1;
    }
    event = reader_find_next(reader);
    if (event) {
        atomic_fetch_add(&event->refs, 1);
        reader->seq++;
    }
    lock_release(&ring->lock);
    return event;
}

uint64_t event_reader_seq(struct event_reader *reader)
{
    uint64_t seq;

    lock_take(&reader->ring->lock);
    seq = reader->seq;
    lock_release(&reader->ring->lock);
    return seq;
}

uint64_t event_reader_last(struct event_reader *reader)
{
    return event_ring_last(reader->ring);
}

/* Returns whether the reader has to wait; it will be woken then. -ESHUTDOWN when no event will
 * come. */
static int reader_prepare_wait(struct event_reader *reader)
{
    struct event_ring *ring = reader->ring;
    uint64_t count;
    int r = 0;

    lock_take(&ring->lock);
    (void)!read(reader->event_fd, &count,
                sizeof(count)); /* clear wake-ups for events that were read already */
    if (reader->seq + 1 < ring_oldest(ring) || reader_find_next(reader))
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
    int r = reader_prepare_wait(reader);

    if (r != 0)
        return r < 0 ? r : 0;
    r = poll(fds, ARRAY_SIZE(fds), timeout_ms);
    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    if (r == 0)
        return -ETIMEDOUT;
    return fds[0].revents ? 0 : -ECANCELED; /* an event takes precedence over a hang-up */
}
