// SPDX-License-Identifier: Apache-2.0
/* usage: unlimited connections|lists|directories|locks MIB [DIRECTORY]
 * Takes about so much memory of the kernel that no memory limit covers, prints how much it was, and
 * holds it until it is killed: data of connections that nobody accepts, lists of
 * poll(2), or caches of a directory that an overlay has merged. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_EACH = 100, /* of one listener, which takes 128 */
    LIST_ENTRIES = 16384,
    LIST_BYTES = LIST_ENTRIES * 72,
    NAMES = 6000,
    NAME_BYTES = 240,
    NAME_KERNEL_BYTES = 512, /* of one in a cache */
    STACK_BYTES = 16384,
    LOCKS = 4000, /* of one file */
    LOCK_BYTES = 192,
};

static const char *directory = "/var/cache"; /* the template has it */

static int idle_listener(struct sockaddr_in *ret)
{
    static unsigned number;
    socklen_t len = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *ret = (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK + number++) };
    if (fd < 0 || bind(fd, (struct sockaddr *)ret, len) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)ret, &len) < 0)
        return -errno;
    return fd;
}

/* Returns the bytes that one connection took before it was closed. */
static long long take_connection(long n)
{
    static struct sockaddr_in address;
    static char data[64 << 10];
    long long sent = 0;
    ssize_t part;
    int fd;

    if (n % CONNECTIONS_EACH == 0 && idle_listener(&address) < 0)
        return -errno;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    while ((part = send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
        sent += part;
    (void)close(fd);
    return sent;
}

static struct pollfd list[LIST_ENTRIES];

static void *list_wait(void *argument)
{
    (void)argument;
    (void)poll(list, LIST_ENTRIES, -1);
    return NULL;
}

static long long take_list(long n)
{
    static pthread_attr_t attributes;
    pthread_t thread;
    int ends[2];

    if (n == 0) {
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (pipe(ends) < 0)
            return -errno;
        for (int i = 0; i < LIST_ENTRIES; i++)
            list[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    }
    return pthread_create(&thread, &attributes, list_wait, NULL) ? -EAGAIN : LIST_BYTES;
}

static int name_make(long number)
{
    char path[NAME_BYTES + 64];
    int len = snprintf(path, sizeof(path), "%s/%08ld", directory, number), fd;

    memset(path + len, 'x', NAME_BYTES - 8);
    path[len + NAME_BYTES - 8] = '\0';
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    return fd < 0 ? -errno : close(fd);
}

/* A change makes the next reader read the directory again; the open ones keep what they have. */
static long long take_directory(long n)
{
    DIR *dir;

    for (long i = 0; n == 0 && i < NAMES; i++)
        if (name_make(i) < 0)
            return -errno;
    dir = opendir(directory);
    if (!dir || !readdir(dir) || name_make(NAMES + n) < 0)
        return -errno;
    return NAMES * NAME_KERNEL_BYTES; /* it stays open */
}

/* Locks of single bytes, from the end, where the kernel finds the place at once. */
static long long take_locks(long n)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/dev/shm/%ld", n);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd < 0)
        return -errno;
    for (long i = LOCKS; i > 0; i--) {
        struct flock lock = { .l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1 };

        if (fcntl(fd, F_SETLK, &lock) < 0)
            return -errno;
    }
    return LOCKS * LOCK_BYTES; /* it stays open */
}

static const struct {
    const char *name;
    long long (*take)(long n);
} kinds[] = {
    { "connections", take_connection },
    { "lists", take_list },
    { "directories", take_directory },
    { "locks", take_locks },
};

int main(int argc, char **argv)
{
    long long wanted = argc > 2 ? strtoll(argv[2], NULL, 10) << 20 : 0, held = 0, r = -EINVAL;
    struct rlimit files;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (argc > 3)
        directory = argv[3];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (long n = 0; argc > 2 && strcmp(kinds[i].name, argv[1]) == 0 && held < wanted; n++) {
            r = kinds[i].take(n);
            if (r < 0)
                break;
            held += r;
        }
    (void)printf("%lld%s%s\n", (held < wanted ? held : wanted) >> 20, r < 0 ? " " : "",
                 r < 0 ? strerrorname_np((int)-r) : "");
    (void)fflush(stdout);
    (void)pause();
    return 0;
}
