// SPDX-License-Identifier: Apache-2.0
#include "store/import/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "kernel/path.h"
#include "store/import/digest.h"
#include "store/import/extract.h"
#include "store/import/image_internal.h"
#include "store/import/import.h"
#include "store/import/root.h"

#define SHA256_PREFIX "sha256:"

static bool has_file(int fd, const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool image_is_oci(int image_fd)
{
    return has_file(image_fd, "oci-layout") && has_file(image_fd, "index.json");
}

bool image_is_docker(int image_fd)
{
    return has_file(image_fd, "manifest.json");
}

bool image_has_path(const char *path)
{
    static const char *const names[] = {
        "", "blobs", "oci-layout", "index.json", "manifest.json", "repositories",
    };
    static const char *const suffixes[] = { "", ".json", ".tar", ".tar.gz" };
    size_t len = strcspn(path, "/"), hex = strspn(path, "0123456789abcdef");

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == len && memcmp(path, names[i], len) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (hex == DIGEST_HEX_LEN && len == hex + strlen(suffixes[i]) &&
            memcmp(path + hex, suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    }
    return false;
}

const char *image_arch(void)
{
    static const struct {
        const char *machine, *arch;
    } arches[] = {
        { "x86_64", "amd64" }, { "aarch64", "arm64" },       { "armv7l", "arm" },
        { "i686", "386" },     { "riscv64", "riscv64" },     { "ppc64le", "ppc64le" },
        { "s390x", "s390x" },  { "loongarch64", "loong64" },
    };
    struct utsname machine;

    if (uname(&machine) < 0)
        return "unknown";
    for (size_t i = 0; i < ARRAY_SIZE(arches); i++) {
        if (strcmp(machine.machine, arches[i].machine) == 0)
            return arches[i].arch;
    }
    return "unknown";
}

int image_blob_path(const char *digest, char ret_path[static IMAGE_BLOB_PATH_MAX], struct err *err)
{
    const char *hex = digest + strlen(SHA256_PREFIX);

    if (strncmp(digest, SHA256_PREFIX, strlen(SHA256_PREFIX)) != 0 ||
        !hex_is_text(hex, DIGEST_HEX_LEN))
        return err_set(err, ERR_INVALID, "'%s' is not a sha256 digest", import_label(digest).text);
    (void)snprintf(ret_path, IMAGE_BLOB_PATH_MAX, "blobs/sha256/%s", hex);
    return 0;
}

int image_blob_open(int image_fd, const char *digest, int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;
    char path[IMAGE_BLOB_PATH_MAX], hex[DIGEST_HEX_LEN + 1];
    struct stat st;
    int r = image_blob_path(digest, path, err);

    if (r < 0)
        return r;
    fd = open_no_links(image_fd, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd == -ENOENT || fd == -ELOOP || (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))))
        return err_set(err, ERR_INVALID, "the image lacks blob %s", digest);
    if (fd < 0)
        return import_error(err, fd, "open blob", digest);
    r = digest_file(fd, hex);
    if (r < 0)
        return import_error(err, r, "read blob", digest);
    if (strcmp(hex, digest + strlen(SHA256_PREFIX)) != 0)
        return err_set(err, ERR_INVALID, "blob %s is damaged: its content has another digest",
                       digest);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int text_read(int fd, struct buf *text)
{
    char chunk[4096];
    ssize_t n;
    int r;

    while ((n = read_full(fd, chunk, sizeof(chunk))) > 0) {
        r = buf_add(text, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
    return n < 0 ? (int)n : buf_reserve(text, 0);
}

int image_json_read(int fd, const char *name, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(IMAGE_JSON_BYTES_MAX);
    json_error_t why;
    json_t *value;
    int r = text_read(fd, &text);

    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED, "%s is larger than %d bytes", name,
                       IMAGE_JSON_BYTES_MAX);
    if (r < 0)
        return import_error(err, r, "read", name);
    value = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
    if (!value)
        return err_set(err, ERR_INVALID, "%s is not valid JSON at byte %d", name, why.position);
    *ret = value;
    return 0;
}

int image_config_check(const json_t *config, struct err *err)
{
    const char *os = "linux", *arch = image_arch();

    if (json_get_text(config, "os", &os, err) < 0 ||
        json_get_text(config, "architecture", &arch, err) < 0)
        return err_wrap(err, "image configuration");
    /* Images made by hand often omit these fields. */
    if ((*os == '\0' || strcmp(os, "linux") == 0) &&
        (*arch == '\0' || strcmp(arch, image_arch()) == 0))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "the image is for %.20s/%.20s, this machine is linux/%s",
                   import_label(os).text, import_label(arch).text, image_arch());
}

int image_layer_apply(int fd, const char *name, struct import_root *root, struct err *err)
{
    static const struct extract_options options = { .is_layer = true };
    int r;

    import_root_next_layer(root);
    r = extract_archive(fd, root, &options, err);
    return r < 0 ? err_wrap(err, "layer %.19s", import_label(name).text) : 0;
}

void image_names_add(struct buf *names, const char *name)
{
    (void)buf_printf(names, "%s%s", names->len ? ", " : "", import_label(name).text);
}
