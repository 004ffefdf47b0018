// SPDX-License-Identifier: Apache-2.0
/* Importing layered images: OCI layouts and `docker save` archives, good ones and bad ones. */
#include "store/import/digest.h"
#include "store/import/image_internal.h"
#include "unit/store/import_test.h"

enum { FILES_MAX = 16, JSON_MAX = 2048 };

/* An image under construction: files that become an archive or a directory. */
struct image {
    struct item files[FILES_MAX];
    char paths[FILES_MAX][IMAGE_BLOB_PATH_MAX];
    size_t count;
    char layers[JSON_MAX]; /* JSON, in the order of the manifest */
};

static struct blob layer_blob, archive_blob;
static char arena[2 * BLOB_BYTES_MAX]; /* files of the current image */
static size_t arena_used;

static const char *sha256(const void *data, size_t len)
{
    static char hex[DIGEST_HEX_LEN + 1];
    struct digest *digest = digest_new();

    digest_add(digest, data, len);
    CHECK(digest_hex(digest, hex) == 0);
    digest_free(digest);
    return hex;
}

static void image_file(struct image *image, const char *path, const void *data, size_t len)
{
    struct item *file = &image->files[image->count];
    char *copy = arena + arena_used;

    CHECK(image->count < FILES_MAX && len < sizeof(arena) - arena_used);
    memcpy(copy, data, len);
    copy[len] = '\0';
    arena_used += len + 1;
    (void)snprintf(image->paths[image->count], sizeof(image->paths[0]), "%s", path);
    *file = (struct item){ .path = image->paths[image->count], .text = copy, .len = len };
    image->count++;
}

/* Adds a blob and returns its digest in hex. */
static const char *image_blob(struct image *image, const void *data, size_t len)
{
    const char *hex = sha256(data, len);
    char path[IMAGE_BLOB_PATH_MAX];

    (void)snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
    image_file(image, path, data, len);
    return hex;
}

static size_t layers_bytes; /* of all layers that were added */

static void layer_add(struct image *image, const char *filter, const struct item *items,
                      size_t count)
{
    size_t used = strlen(image->layers);

    tar_write(&layer_blob, filter, items, count);
    layers_bytes += layer_blob.len;
    (void)snprintf(image->layers + used, sizeof(image->layers) - used,
                   "%s{\"digest\":\"sha256:%s\",\"size\":%zu}", used ? "," : "",
                   image_blob(image, layer_blob.data, layer_blob.len), layer_blob.len);
}

#define LAYER(image, filter, ...)                                                                  \
    do {                                                                                           \
        const struct item items_[] = { __VA_ARGS__ };                                              \
        layer_add(image, filter, items_, ARRAY_SIZE(items_));                                      \
    } while (0)

/* Adds configuration and manifest; returns the manifest's digest. */
static const char *manifest_add(struct image *image, const char *arch)
{
    char text[2 * JSON_MAX], config[128];
    int len = snprintf(config, sizeof(config), "{\"os\":\"linux\",\"architecture\":\"%s\"}", arch);

    len = snprintf(text, sizeof(text), "{\"config\":{\"digest\":\"sha256:%s\"},\"layers\":[%s]}",
                   image_blob(image, config, (size_t)len), image->layers);
    image->layers[0] = '\0';
    return image_blob(image, text, (size_t)len);
}

static void index_add(struct image *image, const char *manifests)
{
    char text[JSON_MAX];
    int len = snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s]}", manifests);

    image_file(image, "index.json", text, (size_t)len);
    image_file(image, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", 30);
}

/* Adds an index with the image of the layers so far. */
static void image_finish(struct image *image)
{
    char text[JSON_MAX];

    (void)snprintf(text, sizeof(text), "{\"digest\":\"sha256:%s\"}",
                   manifest_add(image, image_arch()));
    index_add(image, text);
}

static int image_import_tar(struct image *image)
{
    int r;

    tar_write(&archive_blob, NULL, image->files, image->count);
    file_put("image.tar", archive_blob.data, archive_blob.len);
    r = import_path_as("t", "image.tar");
    arena_used = 0;
    return r;
}

static int image_import_dir(struct image *image)
{
    char path[IMAGE_BLOB_PATH_MAX + 8];
    int r;

    CHECK(mkdirat(scratch_fd, "image", 0755) == 0);
    CHECK(mkdirat(scratch_fd, "image/blobs", 0755) == 0);
    CHECK(mkdirat(scratch_fd, "image/blobs/sha256", 0755) == 0);
    for (size_t i = 0; i < image->count; i++) {
        (void)snprintf(path, sizeof(path), "image/%s", image->files[i].path);
        file_put(path, image->files[i].text, image->files[i].len);
    }
    r = import_path_as("t", "image");
    CHECK(tree_remove_at(scratch_fd, "image") == 0);
    arena_used = 0;
    return r;
}

static void two_layers(struct image *image)
{
    LAYER(image, "gzip", { .path = "usr/bin/", .type = S_IFDIR },
          { .path = "bin", .type = S_IFLNK, .link = "usr/bin" }, { .path = "a", .text = "one" });
    LAYER(image, "zstd", { .path = "bin/tool", .text = "tool" }, { .path = "a", .text = "two" });
    image_finish(image);
}

static void two_layers_are_there(void)
{
    CHECK_TEXT(text_in("t", "usr/bin/tool"), "tool");
    CHECK_TEXT(text_in("t", "a"), "two");
    CHECK(S_ISLNK(stat_in("t", "bin").st_mode));
    forget("t");
}

static void an_oci_archive_is_imported(void)
{
    struct image image = { 0 };

    layers_bytes = 0;
    two_layers(&image);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK(told.source_total == archive_blob.len + layers_bytes);
    CHECK(told.source_bytes == told.source_total);
    two_layers_are_there();
}

static void an_oci_directory_is_imported(void)
{
    struct image image = { 0 };

    layers_bytes = 0;
    two_layers(&image);
    CHECK_IMPORTED(image_import_dir(&image));
    CHECK(told.source_total == layers_bytes && told.source_bytes == layers_bytes);
    two_layers_are_there();
}

static void whiteouts_remove_what_is_below(void)
{
    struct image image = { 0 };

    LAYER(&image, NULL, { .path = "gone", .text = "x" }, { .path = "dir/x", .text = "x" },
          { .path = "stays", .text = "x" }, { .path = "sub/gone", .text = "x" },
          { .path = "sub/stays", .text = "x" });
    LAYER(&image, NULL, { .path = ".wh.gone" }, { .path = ".wh.dir" }, { .path = "sub/.wh.gone" },
          { .path = ".wh.never-there" }, { .path = "no/such/.wh.dir" });
    image_finish(&image);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK(!stat_in("t", "gone").st_mode && !stat_in("t", "dir").st_mode);
    CHECK(!stat_in("t", "sub/gone").st_mode && stat_in("t", "sub/stays").st_mode);
    CHECK(stat_in("t", "stays").st_mode && !stat_in("t", ".wh.gone").st_mode);
    CHECK(!stat_in("t", "no").st_mode);
    forget("t");
}

/* The marker may follow entries of its own layer in the directory. */
static void an_opaque_directory_keeps_its_own_layer(void)
{
    struct image image = { 0 };

    LAYER(&image, NULL, { .path = "d/old", .text = "x" }, { .path = "d/sub/old", .text = "x" },
          { .path = "d/sub/deep/old", .text = "x" }, { .path = "d/both", .text = "old" });
    LAYER(&image, NULL, { .path = "d/", .type = S_IFDIR, .mtime = 77 },
          { .path = "d/both", .text = "new" }, { .path = "d/sub/deep/early", .text = "x" },
          { .path = "d/.wh..wh..opq" }, { .path = "d/late", .text = "x" });
    image_finish(&image);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK(!stat_in("t", "d/old").st_mode && !stat_in("t", "d/sub/old").st_mode);
    CHECK(!stat_in("t", "d/sub/deep/old").st_mode && stat_in("t", "d/sub/deep/early").st_mode);
    CHECK(stat_in("t", "d/late").st_mode && stat_in("t", "d").st_mtime == 77);
    CHECK_TEXT(text_in("t", "d/both"), "new");
    forget("t");
}

static int whiteout_import(const char *name)
{
    struct image image = { 0 };

    LAYER(&image, NULL, { .path = "d/x", .text = "x" }, { .path = name });
    image_finish(&image);
    return image_import_tar(&image);
}

static void a_whiteout_cannot_leave_its_directory(void)
{
    CHECK_REFUSED(whiteout_import("d/.wh."), ERR_INVALID, "whiteout of nothing");
    CHECK_REFUSED(whiteout_import("d/.wh.."), ERR_INVALID, "whiteout of nothing");
    CHECK_REFUSED(whiteout_import("d/.wh..."), ERR_INVALID, "whiteout of nothing");
    CHECK_REFUSED(whiteout_import(".wh..."), ERR_INVALID, "whiteout of nothing");
}

static void a_whiteout_follows_links_inside_only(void)
{
    struct image image = { 0 };

    file_put("precious", "x", 1);
    LAYER(&image, NULL, { .path = "l", .type = S_IFLNK, .link = scratch },
          { .path = "up", .type = S_IFLNK, .link = "../../.." }, { .path = "precious" });
    LAYER(&image, NULL, { .path = "l/.wh.precious" }, { .path = "up/.wh.precious" },
          { .path = "l/.wh..wh..opq" });
    image_finish(&image);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK(faccessat(scratch_fd, "precious", F_OK, 0) == 0);
    CHECK(!stat_in("t", "precious").st_mode); /* "up" is the root, as in a chroot */
    forget("t");
}

static void a_layer_may_change_types(void)
{
    struct image image = { 0 };

    LAYER(&image, NULL, { .path = "dir/a/b", .text = "x" }, { .path = "file", .text = "x" },
          { .path = "link", .type = S_IFLNK, .link = "dir" });
    LAYER(&image, NULL, { .path = "dir", .text = "now a file" },
          { .path = "file/", .type = S_IFDIR }, { .path = "file/x", .text = "x" },
          { .path = "link/", .type = S_IFDIR });
    image_finish(&image);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK_TEXT(text_in("t", "dir"), "now a file");
    CHECK(S_ISREG(stat_in("t", "file/x").st_mode) && S_ISDIR(stat_in("t", "link").st_mode));
    forget("t");
}

static void a_damaged_blob_is_refused(void)
{
    struct image image = { 0 };

    two_layers(&image);
    *(char *)(uintptr_t)&image.files[1].text[40] ^= 1;
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "is damaged");
    image = (struct image){ 0 };
    two_layers(&image);
    *(char *)(uintptr_t)&image.files[3].text[4] ^= 1; /* the manifest */
    CHECK_REFUSED(image_import_dir(&image), ERR_INVALID, "is damaged");
}

static void a_missing_blob_is_refused(void)
{
    struct image image = { 0 };
    char text[JSON_MAX];

    (void)snprintf(text, sizeof(text), "{\"digest\":\"sha256:%s\"}", sha256("", 0));
    index_add(&image, text);
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "lacks blob");
    image = (struct image){ 0 };
    index_add(&image, "{\"digest\":\"sha256:../../../../../etc/passwd\"}");
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "is not a sha256 digest");
}

/* An index of an index, with an attestation and an image for another platform beside ours. */
static void the_image_for_this_machine_is_chosen(void)
{
    struct image image = { 0 };
    char ours[80], theirs[80], inner[JSON_MAX], outer[JSON_MAX];
    int len;

    LAYER(&image, NULL, { .path = "theirs", .text = "x" });
    (void)snprintf(theirs, sizeof(theirs), "sha256:%s", manifest_add(&image, "pdp11"));
    LAYER(&image, NULL, { .path = "ours", .text = "x" });
    (void)snprintf(ours, sizeof(ours), "sha256:%s", manifest_add(&image, image_arch()));
    len = snprintf(inner, sizeof(inner),
                   "{\"manifests\":["
                   "{\"digest\":\"%s\",\"platform\":{\"os\":\"linux\",\"architecture\":\"pdp11\"}},"
                   "{\"digest\":\"%s\",\"platform\":{\"os\":\"unknown\","
                   "\"architecture\":\"unknown\"}},"
                   "{\"digest\":\"%s\",\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
                   theirs, theirs, ours, image_arch());
    (void)snprintf(outer, sizeof(outer), "{\"digest\":\"sha256:%s\"}",
                   image_blob(&image, inner, (size_t)len));
    index_add(&image, outer);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK(stat_in("t", "ours").st_mode && !stat_in("t", "theirs").st_mode);
    forget("t");
}

static void an_image_for_another_machine_is_refused(void)
{
    struct image image = { 0 };
    char text[JSON_MAX];

    LAYER(&image, NULL, { .path = "a", .text = "x" });
    (void)snprintf(text, sizeof(text), "{\"digest\":\"sha256:%s\"}", manifest_add(&image, "pdp11"));
    index_add(&image, text);
    CHECK_REFUSED(image_import_tar(&image), ERR_UNSUPPORTED, "linux/pdp11");
}

static void several_images_are_refused_by_name(void)
{
    struct image image = { 0 };
    char text[JSON_MAX];
    int len;

    LAYER(&image, NULL, { .path = "a", .text = "x" });
    len = snprintf(text, sizeof(text),
                   "{\"digest\":\"sha256:%s\",\"annotations\":"
                   "{\"org.opencontainers.image.ref.name\":\"first:1\"}}",
                   manifest_add(&image, image_arch()));
    LAYER(&image, NULL, { .path = "b", .text = "x" });
    (void)snprintf(text + len, sizeof(text) - (size_t)len,
                   ",{\"digest\":\"sha256:%s\",\"annotations\":"
                   "{\"io.containerd.image.name\":\"second:2\"}}",
                   manifest_add(&image, image_arch()));
    index_add(&image, text);
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "first:1, second:2");
}

static void huge_or_broken_json_is_refused(void)
{
    struct image image = { 0 };
    static char spaces[IMAGE_JSON_BYTES_MAX + 1];

    memset(spaces, ' ', sizeof(spaces));
    CHECK(mkdirat(scratch_fd, "huge", 0755) == 0);
    file_put("huge/oci-layout", "{}", 2);
    file_put("huge/index.json", spaces, sizeof(spaces));
    CHECK_REFUSED(import_path_as("t", "huge"), ERR_EXHAUSTED, "index.json is larger");
    image_file(&image, "manifest.json", "[{\"Config\":", 11);
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "not valid JSON");
}

/* The old docker format; a repeated layer is a link to the first. */
static void a_docker_archive_is_imported(void)
{
    struct image image = { 0 };
    static const struct item lower[] = { { .path = "a", .text = "1" }, { .path = "b" } };
    static const struct item upper[] = { { .path = "c", .text = "3" }, { .path = ".wh.b" } };
    char one[80], two[80], text[JSON_MAX];
    int len;

    (void)snprintf(one, sizeof(one), "%s/layer.tar", sha256("1", 1));
    tar_write(&layer_blob, NULL, lower, ARRAY_SIZE(lower));
    image_file(&image, one, layer_blob.data, layer_blob.len);
    (void)snprintf(two, sizeof(two), "%s/layer.tar", sha256("2", 1));
    tar_write(&layer_blob, NULL, upper, ARRAY_SIZE(upper));
    image_file(&image, two, layer_blob.data, layer_blob.len);
    (void)snprintf(text, sizeof(text), "%s/layer.tar", sha256("3", 1));
    image_file(&image, text, "", 0);
    image.files[2].type = S_IFLNK;
    image.files[2].link = "../d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35/"
                          "layer.tar";
    image_file(&image, sha256("c", 1), "{}", 2);
    len = snprintf(text, sizeof(text),
                   "[{\"Config\":\"%s\",\"RepoTags\":[\"x:1\"],\"Layers\":[\"%s\",\"%s\",\"%s\"]}]",
                   image.files[3].path, one, two, image.files[2].path);
    image_file(&image, "manifest.json", text, (size_t)len);
    CHECK_IMPORTED(image_import_tar(&image));
    CHECK_TEXT(text_in("t", "a"), "1");
    CHECK_TEXT(text_in("t", "c"), "3");
    CHECK(!stat_in("t", "b").st_mode);
    CHECK(entries_in(templates_fd, "t") == 3, "(root, meta and settings)");
    forget("t");
}

static void a_docker_archive_cannot_name_host_files(void)
{
    struct image image = { 0 };
    static const char text[] =
        "[{\"Config\":\"../../../../../../../../../../../../etc/passwd\",\"Layers\":[]}]";

    image_file(&image, "manifest.json", text, sizeof(text) - 1);
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "lacks file");
}

/* A link to a host file with the right content does not replace a blob. */
static void a_blob_is_not_taken_from_the_host(void)
{
    struct image image = { 0 };
    char path[80];

    two_layers(&image);
    file_put("blob", image.files[0].text, image.files[0].len);
    (void)snprintf(path, sizeof(path), "%s/blob", scratch);
    image.files[0] = (struct item){ .path = image.paths[0], .type = S_IFLNK, .link = path };
    CHECK_REFUSED(image_import_tar(&image), ERR_INVALID, "lacks blob");
}

static void an_image_bomb_is_refused(void)
{
    struct image image = { 0 };
    static char zeros[TEST_BYTES_MAX / 2 + 1];
    static const struct item items[] = { { .path = "z", .text = zeros, .len = sizeof(zeros) } };

    /* Neither one layer alone nor the final tree is too large. */
    layer_add(&image, "gzip", items, 1);
    layer_add(&image, "gzip", items, 1);
    image_finish(&image);
    CHECK_REFUSED(image_import_tar(&image), ERR_EXHAUSTED, "larger than");
}

/* A root may contain files that look like a part of an image. */
static void a_root_with_a_manifest_stays_a_root(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "manifest.json", .text = "[]" },
                          { .path = "etc/passwd", .text = "x" }));
    CHECK_TEXT(text_in("t", "manifest.json"), "[]");
    CHECK(entries_in(templates_fd, "t") == 2);
    forget("t");
}

static void all(void)
{
    if (geteuid() != 0)
        SKIP("only root may set the owners of a template's files");
    scratch_make();
    store_start();
    RUN(an_oci_archive_is_imported);
    RUN(an_oci_directory_is_imported);
    RUN(whiteouts_remove_what_is_below);
    RUN(an_opaque_directory_keeps_its_own_layer);
    RUN(a_whiteout_cannot_leave_its_directory);
    RUN(a_whiteout_follows_links_inside_only);
    RUN(a_layer_may_change_types);
    RUN(a_damaged_blob_is_refused);
    RUN(a_missing_blob_is_refused);
    RUN(the_image_for_this_machine_is_chosen);
    RUN(an_image_for_another_machine_is_refused);
    RUN(several_images_are_refused_by_name);
    RUN(huge_or_broken_json_is_refused);
    RUN(a_docker_archive_is_imported);
    RUN(a_docker_archive_cannot_name_host_files);
    RUN(a_blob_is_not_taken_from_the_host);
    RUN(an_image_bomb_is_refused);
    RUN(a_root_with_a_manifest_stays_a_root);
    store_stop();
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
