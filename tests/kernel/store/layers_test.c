// SPDX-License-Identifier: Apache-2.0
/* Images whose layers are templates of their own must be the images that one tree makes of them:
 * random images, unpacked in both ways. usage: layers_test [SEED [IMAGES]] */
#include <archive.h>
#include <archive_entry.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/io.h"
#include "kernel/store/world.h"
#include "store/import/blobs.h"
#include "store/import/digest.h"
#include "store/import/image.h"

enum {
    IMAGES = 60,
    LAYERS_MAX = 5,
    ENTRIES_MAX = 14,
    LAYER_BYTES_MAX = 1 << 20,
    LIST_MAX = 1 << 20
};

static unsigned random_state;
static char layer_data[LAYER_BYTES_MAX];
static size_t layer_len;
static unsigned shared_images, plain_images;

static unsigned pick(unsigned count)
{
    return (unsigned)rand_r(&random_state) % count;
}

/* --- images ----------------------------------------------------------------------------------- */

static void blob_put(int images_fd, const void *data, size_t len, char ret[static 72])
{
    struct digest *digest = digest_new();
    cleanup_close int fd = -EBADF;
    struct err err = { 0 };

    (void)memcpy(ret, "sha256:", 8);
    digest_add(digest, data, len);
    CHECK(digest_hex(digest, ret + 7) == 0);
    digest_free(digest);
    CHECK_OK(blob_new(images_fd, &fd, &err), &err);
    CHECK(write_all(fd, data, len) == 0);
    CHECK_OK(blob_name(images_fd, fd, ret, &err), &err);
}

static void entry_add(struct archive *archive, const char *path, mode_t type, const char *target)
{
    struct archive_entry *entry = archive_entry_new();
    const char *text = type == S_IFREG && !target ? "some text" : "";
    size_t len = pick(3) * strlen(text) / 2;

    archive_entry_set_pathname(entry, path);
    archive_entry_set_mode(entry, type | (0700 + pick(8) * 8 + pick(8)));
    archive_entry_set_uid(entry, pick(3));
    archive_entry_set_gid(entry, pick(3));
    archive_entry_set_mtime(entry, 1000000000 + pick(1000), 0);
    archive_entry_set_size(entry, (la_int64_t)len);
    if (type == S_IFLNK)
        archive_entry_set_symlink(entry, target);
    else if (target)
        archive_entry_set_hardlink(entry, target);
    if (type == S_IFREG && !target && pick(4) == 0)
        archive_entry_xattr_add_entry(entry, "user.some", "value", 5);
    if (type == S_IFDIR && pick(4) == 0)
        archive_entry_xattr_add_entry(entry, "trusted.overlay.opaque", "y", 1);
    CHECK(archive_write_header(archive, entry) == ARCHIVE_OK, "%s", archive_error_string(archive));
    if (len)
        CHECK(archive_write_data(archive, text, len) == (la_ssize_t)len);
    archive_entry_free(entry);
}

enum last { LAST_DIR, LAST_FILE, LAST_LINK, LAST_ANY };

/* Directories, files and links mostly have names of their own: an image in which an entry is below
 * a file is refused in both ways. */
static void path_make(char path[static 64], const char *prefix, enum last last)
{
    static const char *const names[] = { "a", "b", "c", "f", "g", "l" };
    static const unsigned char begin[] = { 0, 3, 5, 0 }, count[] = { 3, 2, 1, 6 };
    unsigned depth = pick(3);
    size_t used = 0;

    path[0] = '\0';
    if (pick(24) == 0)
        last = LAST_ANY;
    for (unsigned i = 0; i < depth; i++)
        used += (size_t)snprintf(path + used, 64 - used, "%s/", names[pick(40) ? pick(3) : 5]);
    (void)snprintf(path + used, 64 - used, "%s%s", prefix, names[begin[last] + pick(count[last])]);
}

static void opaque_add(struct archive *archive)
{
    char path[64], marker[96];

    path_make(path, "", LAST_DIR);
    (void)snprintf(marker, sizeof(marker), "%s/.wh..wh..opq", path);
    entry_add(archive, path, S_IFDIR, NULL);
    entry_add(archive, marker, S_IFREG, NULL);
}

/* Tools write the whiteouts of a directory before its files. */
static void random_entries(struct archive *archive, bool is_first, unsigned count)
{
    static const char *const targets[] = { "a", "/b", "nowhere", "../c" };
    char path[64], file[64] = "";

    for (unsigned i = 0; !is_first && i < count / 3; i++) {
        path_make(path, ".wh.", LAST_ANY);
        entry_add(archive, path, S_IFREG, NULL);
    }
    if (!is_first && pick(3) == 0)
        opaque_add(archive);
    for (unsigned i = 0; i < count; i++) {
        switch (pick(8)) {
        case 0:
            path_make(path, "", LAST_LINK);
            entry_add(archive, path, S_IFLNK, targets[pick(ARRAY_SIZE(targets))]);
            break;
        case 1:
            path_make(path, "", LAST_FILE);
            if (*file)
                entry_add(archive, path, S_IFREG, file);
            break;
        case 2:
        case 3:
        case 4:
            path_make(path, "", LAST_DIR);
            entry_add(archive, path, S_IFDIR, NULL);
            break;
        default:
            path_make(path, "", LAST_FILE);
            entry_add(archive, path, S_IFREG, NULL);
            (void)memcpy(file, path, sizeof(file));
        }
    }
}

static void layer_make(bool is_first)
{
    struct archive *archive = archive_write_new();

    (void)archive_write_set_format_pax(archive);
    if (pick(2))
        CHECK(archive_write_add_filter_by_name(archive, "gzip") == ARCHIVE_OK);
    CHECK(archive_write_open_memory(archive, layer_data, sizeof(layer_data), &layer_len) ==
          ARCHIVE_OK);
    if (pick(2))
        entry_add(archive, "./", S_IFDIR, NULL);
    if (is_first)
        entry_add(archive, "etc", S_IFDIR, NULL);
    random_entries(archive, is_first, 1 + pick(ENTRIES_MAX));
    CHECK(archive_write_close(archive) == ARCHIVE_OK);
    (void)archive_write_free(archive);
}

static void image_make(int images_fd, char ret[static 72])
{
    unsigned count = 1 + pick(LAYERS_MAX);
    char text[4096], digest[72];
    size_t used;
    int len =
        snprintf(text, sizeof(text), "{\"os\":\"linux\",\"architecture\":\"%s\"}", image_arch());

    blob_put(images_fd, text, (size_t)len, digest);
    used =
        (size_t)snprintf(text, sizeof(text),
                         "{\"config\":{\"digest\":\"%s\",\"size\":%d},\"layers\":[", digest, len);
    for (unsigned i = 0; i < count; i++) {
        layer_make(i == 0);
        blob_put(images_fd, layer_data, layer_len, digest);
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s{\"digest\":\"%s\",\"size\":%zu}",
                             i ? "," : "", digest, layer_len);
    }
    used += (size_t)snprintf(text + used, sizeof(text) - used, "]}");
    blob_put(images_fd, text, used, ret);
}

/* --- comparison ------------------------------------------------------------------------------- */

static void tree_list(int dir_fd, const char *path, struct buf *out)
{
    struct dirent **names = NULL;
    char self[64], child[512], target[256], value[16];
    int count;

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dir_fd);
    count = scandir(self, &names, NULL, alphasort);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        cleanup_close int fd = -EBADF;
        struct stat st;
        ssize_t n;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        CHECK(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
        (void)snprintf(child, sizeof(child), "%s/%s", path, name);
        CHECK(buf_printf(out, "%s %o %u:%u %lld", child, st.st_mode, st.st_uid, st.st_gid,
                         S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_mtime) == 0);
        if (S_ISLNK(st.st_mode)) {
            n = readlinkat(dir_fd, name, target, sizeof(target) - 1);
            CHECK(n >= 0 && buf_printf(out, " -> %.*s", (int)n, target) == 0);
        } else {
            fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            CHECK(fd >= 0);
        }
        if (S_ISREG(st.st_mode)) {
            n = read(fd, target, sizeof(target) - 1);
            CHECK(n >= 0 && buf_printf(out, " '%.*s' %zd", (int)n, target,
                                       fgetxattr(fd, "user.some", value, sizeof(value))) == 0);
        }
        CHECK(buf_add_str(out, "\n") == 0);
        if (S_ISDIR(st.st_mode))
            tree_list(fd, child, out);
        free(names[i]);
    }
    free(names);
}

static void template_listing(const char *name, struct buf *out)
{
    struct volume *volume = new_volume_on(name, "v", 0);
    int fd = enter(volume);

    tree_list(fd, "", out);
    leave(fd);
    destroy(volume);
}

static bool is_shared(const char *name)
{
    struct template_info info;
    struct err err = { 0 };

    CHECK_OK(template_get_info(world.store, name, &info, &err), &err);
    return info.base[0] != '\0';
}

static int import_as(const char *name, int images_fd, const char *digest, const char *owner,
                     struct err *err)
{
    const struct template_source source = {
        .name = name, .digest = digest, .image_fd = images_fd, .owner = owner
    };
    struct template_info info;

    return template_import(world.store, &source, &info, err);
}

static size_t layers_there(void)
{
    cleanup_free struct template_info *list = NULL;
    struct err err = { 0 };
    size_t count = 0, layers = 0;

    CHECK_OK(template_list(world.store, &list, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        layers += strncmp(list[i].name, TEMPLATE_LAYER_PREFIX, strlen(TEMPLATE_LAYER_PREFIX)) == 0;
    return layers;
}

static void drop(const char *name)
{
    struct err err = { 0 };

    CHECK_OK(template_remove(world.store, name, &err), &err);
    template_layers_collect(world.store);
}

static void image_compare(int images_fd, unsigned seed)
{
    cleanup_with(buf_done) struct buf flat = BUF_INIT(LIST_MAX), shared = BUF_INIT(LIST_MAX);
    struct err flat_err = { 0 }, err = { 0 };
    char digest[72];
    int r;

    random_state = seed;
    image_make(images_fd, digest);
    r = import_as("flat", images_fd, digest, NULL, &flat_err);
    CHECK((r < 0) == (import_as("shared", images_fd, digest, "ann", &err) < 0),
          "(seed %u: '%s', '%s')", seed, flat_err.msg, err.msg);
    if (r < 0) {
        CHECK(layers_there() == 0, "(seed %u)", seed);
        return;
    }
    shared_images += is_shared("shared");
    plain_images += !is_shared("shared");
    template_listing("flat", &flat);
    template_listing("shared", &shared);
    CHECK(strcmp(flat.data, shared.data) == 0, "(seed %u)\n%s---\n%s", seed, flat.data,
          shared.data);
    drop("flat");
    drop("shared");
    CHECK(layers_there() == 0, "(seed %u)", seed);
}

static unsigned first_seed = 1, images = IMAGES;

static void random_images_are_the_same_in_both_ways(void)
{
    cleanup_close int images_fd = -EBADF;
    struct err err = { 0 };

    CHECK_OK(blobs_open(world.store, "ann", &images_fd, &err), &err);
    for (unsigned i = 0; i < images; i++)
        image_compare(images_fd, first_seed + i);
    CHECK(images < IMAGES || (shared_images > images / 8 && plain_images > 0),
          "(%u shared, %u plain)", shared_images, plain_images);
}

/* Two images with the same first layer, and one of another owner. */
static void images_of_one_owner_share_layers(void)
{
    cleanup_close int images_fd = -EBADF;
    char one[72], layer[72], config[72], text[1024];
    struct err err = { 0 };
    struct volume *volume;
    int len;

    CHECK_OK(blobs_open(world.store, "ann", &images_fd, &err), &err);
    random_state = 7;
    len = snprintf(text, sizeof(text), "{\"os\":\"linux\",\"architecture\":\"%s\"}", image_arch());
    blob_put(images_fd, text, (size_t)len, config);
    layer_make(true);
    blob_put(images_fd, layer_data, layer_len, layer);
    for (int i = 0; i < 2; i++) {
        len = snprintf(
            text, sizeof(text),
            "{\"config\":{\"digest\":\"%s\"},\"layers\":[{\"digest\":\"%s\"}%s%s%s],\"n\":1}",
            config, layer, i ? ",{\"digest\":\"" : "", i ? layer : "", i ? "\"}" : "");
        blob_put(images_fd, text, (size_t)len, one);
        CHECK(import_as(i ? "two" : "one", images_fd, one, "ann", &err) == 0, "(%s)", err.msg);
        CHECK(layers_there() == (size_t)i + 1);
    }
    CHECK(import_as("foreign", images_fd, one, "bob", &err) == 0, "(%s)", err.msg);
    CHECK(layers_there() == 4);
    drop("foreign");
    CHECK(layers_there() == 2);
    /* What a volume stands on stays, also without its template's name in any list. */
    volume = new_volume_on("two", "v", 0);
    CHECK_KIND(template_remove(world.store, "two", &err), &err, ERR_BUSY);
    template_layers_collect(world.store);
    CHECK(layers_there() == 2);
    destroy(volume);
    drop("two");
    CHECK(layers_there() == 1);
    drop("one");
    CHECK(layers_there() == 0);
}

static const struct claim claims[] = {
    CLAIM(random_images_are_the_same_in_both_ways),
    CLAIM(images_of_one_owner_share_layers),
};

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        images = (unsigned)strtoul(argv[2], NULL, 10);
    world_begin();
    run_claims(claims, ARRAY_SIZE(claims));
    return 0;
}
