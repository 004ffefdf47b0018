// SPDX-License-Identifier: Apache-2.0
/* The guard: makes one canary of each kind, prints the facts about them in one line, answers
 * connections with the token, and removes everything when its standard input ends. It runs on the
 * host, and in a sandbox that stands for a neighbour; what cannot be made there is left out. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "prove/prove.h"

enum { LISTENERS = 3, KEY_ALL = 0x3f3f3f3f, PATH_BYTES = 400 };

struct guard {
    char token[TOKEN_BYTES]; /* hexadecimal, with a NUL */
    char file[PATH_BYTES];
    char queue[64];
    int segment;
    long key;
    int listeners[LISTENERS]; /* -1: none */
    char facts[FACTS_BYTES_MAX];
    size_t len;
};

static void fact_add(struct guard *guard, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fact_add(struct guard *guard, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(guard->facts + guard->len, sizeof(guard->facts) - guard->len, format, arguments);
    va_end(arguments);
    if (n > 0 && guard->len + (size_t)n < sizeof(guard->facts))
        guard->len += (size_t)n;
}

static void token_make(struct guard *guard)
{
    unsigned char random[(TOKEN_BYTES - 2) / 2];

    (void)!getrandom(random, sizeof(random), 0);
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(guard->token + 2 * i, 3, "%02x", random[i]);
    fact_add(guard, "token=%s pid=%d memory=%llu", guard->token, (int)getpid(),
             (unsigned long long)(uintptr_t)guard->token);
}

static void handle_add(struct guard *guard)
{
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + HANDLE_BYTES_MAX];
    } found = { .handle = { .handle_bytes = HANDLE_BYTES_MAX } };
    int mount_id;

    if (name_to_handle_at(AT_FDCWD, guard->file, &found.handle, &mount_id, 0) < 0)
        return;
    fact_add(guard, " handle=");
    for (size_t i = 0; i < sizeof(struct file_handle) + found.handle.handle_bytes; i++)
        fact_add(guard, "%02x", found.bytes[i]);
}

/* Returns whether root of the host can open this device. */
static bool device_opens(const char *dir, dev_t device)
{
    char path[PATH_BYTES + 16];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/node", dir);
    fd = mknod(path, S_IFBLK | 0600, device) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    (void)unlink(path);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* The disk of the file, or else the first one that opens: a device group may forbid some. */
static void device_add(struct guard *guard, const char *dir, const struct stat *info)
{
    dev_t found = major(info->st_dev) ? info->st_dev : 0;
    FILE *partitions = fopen("/proc/partitions", "re");
    char line[256];
    unsigned first, second;

    while (partitions && !(found && device_opens(dir, found)) &&
           fgets(line, sizeof(line), partitions))
        if (sscanf(line, "%u %u", &first, &second) == 2) // NOLINT(cert-err34-c): of the kernel
            found = makedev(first, second);
    if (partitions)
        (void)fclose(partitions);
    if (found)
        fact_add(guard, " device=%llu", (unsigned long long)found);
}

static int file_make(struct guard *guard, const char *dir)
{
    struct stat info;
    int fd;

    (void)snprintf(guard->file, sizeof(guard->file), "%s/canary", dir);
    fd = open(guard->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, guard->token, strlen(guard->token)) < 0 || fstat(fd, &info) < 0) {
        perror(guard->file);
        return -1;
    }
    (void)close(fd);
    fact_add(guard, " file=%s dir=%s", guard->file, dir);
    handle_add(guard);
    device_add(guard, dir, &info);
    return 0;
}

static int listener_open(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind(fd, address, len) == 0 && listen(fd, 16) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Listens on any port of an address, and returns it; 0: it cannot. */
static unsigned port_open(struct guard *guard, size_t index, struct in_addr where)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = where };
    socklen_t len = sizeof(address);

    guard->listeners[index] = listener_open((const struct sockaddr *)&address, sizeof(address));
    if (guard->listeners[index] < 0 ||
        getsockname(guard->listeners[index], (struct sockaddr *)&address, &len) < 0)
        return 0;
    return ntohs(address.sin_port);
}

/* Finds an address of this machine that is not loopback. */
static bool address_find(struct in_addr *ret)
{
    struct ifaddrs *list = NULL;
    bool is_found = false;

    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *each = list; each && !is_found; each = each->ifa_next) {
        if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET ||
            (each->ifa_flags & IFF_LOOPBACK) || !(each->ifa_flags & IFF_UP))
            continue;
        *ret = ((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr;
        is_found = true;
    }
    freeifaddrs(list);
    return is_found;
}

static void listeners_open(struct guard *guard)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct in_addr where = { htonl(INADDR_LOOPBACK) };
    char text[INET_ADDRSTRLEN];
    unsigned port = port_open(guard, 0, where);
    int len;

    if (port)
        fact_add(guard, " port=%u", port);
    if (address_find(&where) && (port = port_open(guard, 1, where)))
        fact_add(guard, " address=%s address_port=%u",
                 inet_ntop(AF_INET, &where, text, sizeof(text)), port);
    len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "holt-canary-%.12s", guard->token);
    guard->listeners[2] =
        listener_open((const struct sockaddr *)&name,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)len);
    if (guard->listeners[2] >= 0)
        fact_add(guard, " socket=%s", name.sun_path + 1);
}

static void objects_make(struct guard *guard)
{
    struct mq_attr size = { .mq_maxmsg = 1, .mq_msgsize = TOKEN_BYTES };
    char digits[8] = "";
    key_t key;
    mqd_t queue;
    void *memory;

    memcpy(digits, guard->token, sizeof(digits) - 1);
    key = (key_t)strtoul(digits, NULL, 16) | 1;
    guard->segment = shmget(key, TOKEN_BYTES, IPC_CREAT | IPC_EXCL | 0600);
    memory = guard->segment < 0 ? (void *)-1 : shmat(guard->segment, NULL, 0);
    if (memory != (void *)-1) {
        memcpy(memory, guard->token, TOKEN_BYTES);
        fact_add(guard, " segment=%u", (unsigned)key);
    }
    (void)snprintf(guard->queue, sizeof(guard->queue), "/holt-canary-%.12s", guard->token);
    queue = mq_open(guard->queue, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &size);
    if (queue != (mqd_t)-1)
        fact_add(guard, " queue=%s", guard->queue);
    else
        guard->queue[0] = '\0';
}

static void key_make(struct guard *guard)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "holt-canary-%.12s", guard->token);
    guard->key = syscall(SYS_add_key, "user", name, guard->token, strlen(guard->token),
                         KEY_SPEC_PROCESS_KEYRING);
    if (guard->key <= 0 || syscall(SYS_keyctl, KEYCTL_SETPERM, guard->key, KEY_ALL) < 0)
        return;
    fact_add(guard, " key=%ld", guard->key);
}

static void log_write(const struct guard *guard)
{
    int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    char line[96];
    int len = snprintf(line, sizeof(line), "holt doctor --prove: canary %s\n", guard->token);

    if (fd < 0)
        return;
    (void)!write(fd, line, (size_t)len); /* each write is a line of its own */
    (void)close(fd);
}

/* Answers connections until standard input ends. */
static void serve(const struct guard *guard)
{
    struct pollfd waits[LISTENERS + 1] = { { .fd = STDIN_FILENO, .events = POLLIN } };

    for (size_t i = 0; i < LISTENERS; i++)
        waits[i + 1] = (struct pollfd){ .fd = guard->listeners[i], .events = POLLIN };
    while (poll(waits, LISTENERS + 1, -1) > 0 || errno == EINTR) {
        char ignored[64];

        if (waits[0].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
            return;
        for (size_t i = 1; i <= LISTENERS; i++) {
            int fd = waits[i].revents ? accept4(waits[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;

            if (fd < 0)
                continue;
            (void)send(fd, guard->token, strlen(guard->token), MSG_NOSIGNAL);
            (void)close(fd);
        }
    }
}

int guard_run(const char *dir)
{
    struct guard guard = { .segment = -1, .listeners = { -1, -1, -1 } };

    (void)prctl(PR_SET_NAME, "holt-canary");
    token_make(&guard);
    if (file_make(&guard, dir) < 0)
        return 1;
    listeners_open(&guard);
    objects_make(&guard);
    key_make(&guard);
    log_write(&guard);
    (void)printf("%s\n", guard.facts);
    (void)fflush(stdout);
    serve(&guard);
    (void)unlink(guard.file);
    if (guard.segment >= 0)
        (void)shmctl(guard.segment, IPC_RMID, NULL);
    if (*guard.queue)
        (void)mq_unlink(guard.queue);
    return 0;
}
