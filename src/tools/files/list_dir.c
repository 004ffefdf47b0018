// SPDX-License-Identifier: Apache-2.0
/* list_dir: one line for each entry, sorted by name, a directory followed by its entries. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "tools/path.h"
#include "tools/text.h"

enum {
    NAMES_MAX = 256 * 1024 * 1024, /* bytes of all names of a directory */
    READ_BYTES = 64 * 1024,
    PREFIX_MAX = 64 * (4 * NAME_MAX + 1), /* the maximum depth, all bytes escaped */
    SHOWN_MAX = 16 * 1024 * 1024,         /* bytes of lines */
};

/* As in getdents(2). */
struct kernel_dirent {
    uint64_t d_ino;
    int64_t d_off;
    uint16_t d_reclen;
    uint8_t d_type;
    char d_name[];
};

/* The entries of a directory: each is the type, as one byte, and the name. */
struct names {
    struct buf text;
    const char **at;
    size_t count;
};

struct listing {
    uint64_t left; /* entries that may still be listed */
    uint64_t listed;
    bool is_cut;
    struct tool_reply *reply;
};

static void names_done(struct names *names)
{
    buf_done(&names->text);
    free(names->at);
}

static int names_add(struct names *names, const char *data, size_t len)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < len;) {
        const struct kernel_dirent *entry = (const void *)(data + at);
        const char *name = entry->d_name;
        char type = (char)entry->d_type;

        at += entry->d_reclen;
        if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
            continue;
        r = buf_add(&names->text, &type, 1);
        if (r == 0)
            r = buf_add(&names->text, name, strlen(name) + 1);
        names->count++;
    }
    return r;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

static int names_read(int fd, struct names *ret)
{
    static _Alignas(struct kernel_dirent) char data[READ_BYTES];
    long n;
    int r = 0;

    while (r == 0 && (n = syscall(SYS_getdents64, fd, data, sizeof(data))) != 0)
        r = n < 0 ? -errno : names_add(ret, data, (size_t)n);
    if (r < 0)
        return r;
    ret->at = calloc(ret->count + 1, sizeof(*ret->at));
    if (!ret->at)
        return -ENOMEM;
    for (size_t i = 0, at = 0; i < ret->count; i++) {
        ret->at[i] = ret->text.data + at;
        at += 1 + strlen(ret->at[i] + 1) + 1;
    }
    qsort(ret->at, ret->count, sizeof(*ret->at), compare_names);
    return 0;
}

static int add_target(struct buf *out, int dir_fd, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);
    int r = buf_add_str(out, " -> ");

    target[len > 0 ? len : 0] = '\0';
    return r < 0 ? r : text_add_name(out, target);
}

/* Appends the type and, for a file, the size. */
static int add_kind(struct buf *out, int dir_fd, const char *name, unsigned char type)
{
    struct stat st;

    switch (type) {
    case DT_DIR:
        return buf_add_str(out, "/");
    case DT_LNK:
        return add_target(out, dir_fd, name);
    case DT_REG:
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return 0; /* removed meanwhile */
        return buf_printf(out, "\t%" PRIu64, (uint64_t)st.st_size);
    case DT_FIFO:
        return buf_add_str(out, "\t(pipe)");
    case DT_SOCK:
        return buf_add_str(out, "\t(socket)");
    default:
        return buf_add_str(out, "\t(device)");
    }
}

static unsigned char entry_type(int dir_fd, const char *entry)
{
    struct stat st;

    if (entry[0] != DT_UNKNOWN)
        return (unsigned char)entry[0];
    return fstatat(dir_fd, entry + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_REG : IFTODT(st.st_mode);
}

static int listing_add_dir(struct listing *listing, int dir_fd, struct buf *prefix, int64_t depth);

/* Reports a directory that cannot be read; omits one that was removed meanwhile. */
static int listing_add_subdir(struct listing *listing, int dir_fd, const char *name,
                              struct buf *prefix, int64_t depth)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int found = fd < 0 ? -errno : 0;
    size_t before = prefix->len;
    int r = text_add_name(prefix, name);

    if (r == 0)
        r = buf_add_str(prefix, "/");
    if (r == 0 && found == 0)
        found = listing_add_dir(listing, fd, prefix, depth);
    if (r == 0 && (found == -ENOBUFS || found == -ENOMEM))
        r = found;
    else if (r == 0 && found < 0 && found != -ENOENT)
        r = buf_printf(&listing->reply->content, "(cannot read %s: %s)\n", prefix->data,
                       strerror(-found));
    prefix->len = before;
    if (prefix->data)
        prefix->data[before] = '\0';
    return r;
}

/* Recurses up to `depth`, which is at most 64. */
static int listing_add_dir(struct listing *listing, int dir_fd, struct buf *prefix, int64_t depth)
{
    cleanup_with(names_done) struct names names = { .text.max = NAMES_MAX };
    struct buf *out = &listing->reply->content;
    int r = names_read(dir_fd, &names);

    for (size_t i = 0; r == 0 && i < names.count; i++) {
        const char *name = names.at[i] + 1;
        unsigned char type = entry_type(dir_fd, names.at[i]);

        if (listing->left == 0 || out->len > SHOWN_MAX) {
            listing->is_cut = true;
            break;
        }
        listing->left--;
        listing->listed++;
        r = buf_add(out, prefix->data, prefix->len);
        if (r == 0)
            r = text_add_name(out, name);
        if (r == 0)
            r = add_kind(out, dir_fd, name, type);
        if (r == 0)
            r = buf_add(out, "\n", 1);
        if (r == 0 && type == DT_DIR && depth > 1)
            r = listing_add_subdir(listing, dir_fd, name, prefix, depth - 1);
    }
    return r;
}

void tool_list_dir(const struct tool_values *values, struct tool_reply *reply)
{
    cleanup_with(buf_done) struct buf prefix = BUF_INIT(PREFIX_MAX);
    struct listing listing = { .left = (uint64_t)values->at[LIST_MAX].number, .reply = reply };
    const struct tool_text *path = &values->at[LIST_PATH].text;
    cleanup_close int fd = -EBADF;
    char full[PATH_MAX];
    int r;

    if (!path_full(path, full, reply))
        return;
    fd = open(full, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    r = fd < 0 ? -errno : listing_add_dir(&listing, fd, &prefix, values->at[LIST_DEPTH].number);
    if (r == -ENOTDIR && access(full, F_OK) == 0)
        tool_reply_set_error(reply, "'%s' is not a directory. Use read_file to read a file.",
                             path->data);
    else if (r < 0)
        (void)path_refuse(reply, "list", path->data, full, r);
    else if (listing.listed == 0)
        (void)buf_printf(&reply->content, "(the directory '%s' is empty)\n", path->data);
    if (listing.is_cut) {
        reply->outcome.flags |= TOOL_IS_CUT;
        (void)buf_printf(&reply->content,
                         "(truncated after %" PRIu64
                         " entries; increase max_results, or list a subdirectory)\n",
                         listing.listed);
    }
}
