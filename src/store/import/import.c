// SPDX-License-Identifier: Apache-2.0
#include "store/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "store/import/copy.h"
#include "store/import/extract.h"
#include "store/import/image.h"
#include "store/import/image_internal.h"
#include "store/import/layers.h"
#include "store/import/work.h"

static int rootfs_import(struct import *import, int fd, struct err *err)
{
    static const struct extract_options options = { 0 };

    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, -errno, "rewind the archive");
    return extract_archive(fd, &import->root, &options, err);
}

/* Unpacks the archive as a layered image. Returns 1 if it turns out to be something else. */
static int image_unpack(struct import *import, int fd, int image_fd, struct err *err)
{
    static const struct extract_options options = { .accepts = image_has_path };
    struct import_budget budget = {
        .bytes_max = import->budget.bytes_max,
        .files_max = import->budget.files_max,
        .source_total = import->budget.source_total,
        .progress = import->budget.progress,
        .context = import->budget.context,
    };
    cleanup_with(import_root_done) struct import_root root = IMPORT_ROOT_INIT(image_fd, &budget);
    int r;

    root.is_plain = true;
    r = extract_archive(fd, &root, &options, err);
    if (r == 0)
        import->budget.source_bytes = budget.source_bytes;
    return r;
}

static int image_import(struct import *import, int image_fd, struct err *err)
{
    cleanup_json json_t *manifest = NULL, *config = NULL;
    bool is_oci = image_is_oci(image_fd);
    int r;

    import->root.is_layered = true;
    r = is_oci ? image_apply_oci(image_fd, &import->root, err)
               : image_apply_docker(image_fd, &import->root, err);
    if (r == 0)
        r = is_oci ? image_layout_read(image_fd, &manifest, &config, err)
                   : image_docker_config(image_fd, &config, err);
    return r < 0 ? r : image_config_settings(config, &import->settings, err);
}

/* Roots and images have no names in common, so the first entry decides, and a root is not
 * decompressed twice. */
static int archive_import(struct import *import, int fd, struct err *err)
{
    cleanup_close int image_fd = -EBADF;
    int removed, r = import_subdir(import, "image", 0700, &image_fd, err);

    if (r < 0)
        return r;
    r = image_unpack(import, fd, image_fd, err);
    if (r < 0)
        return r;
    if (r == 0 && (image_is_oci(image_fd) || image_is_docker(image_fd)))
        r = image_import(import, image_fd, err);
    else
        r = rootfs_import(import, fd, err);
    removed = tree_remove_at(import->fd, "image");
    if (r >= 0 && removed < 0)
        r = err_sys(err, removed, "remove the unpacked image");
    return r;
}

static int directory_import(struct import *import, int fd, struct err *err)
{
    cleanup_with(import_copy_done) struct import_copy copy = { .root = &import->root };
    struct stat state;

    if (image_is_oci(fd))
        return image_import(import, fd, err);
    /* Otherwise a copy of "/" would copy itself endlessly. */
    if (fstat(import->store->dir_fd, &state) < 0)
        return err_sys(err, -errno, "stat the state directory");
    copy.skip_dev = state.st_dev;
    copy.skip_ino = state.st_ino;
    return import_copy_tree(&copy, fd, ".", "", err);
}

static int source_import(struct import *import, const struct template_source *source,
                         struct err *err)
{
    const char *path = source->path;
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r;

    if (source->layer_fd)
        return image_layer_apply(*source->layer_fd, "of the template", &import->root, err);
    if (source->digest) {
        r = source->owner ? image_layers_import(import, source, err) : 1;
        if (r <= 0)
            return r;
        import->root.is_layered = true;
        return image_apply_blobs(source->image_fd, source->digest, &import->root, err);
    }
    if (*path != '/')
        return err_set(err, ERR_INVALID, "'%s' is not an absolute path", import_label(path).text);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "'%s' does not exist", import_label(path).text);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, -errno, "open '%s'", import_label(path).text);
    if (S_ISDIR(st.st_mode))
        return directory_import(import, fd, err);
    if (S_ISREG(st.st_mode)) {
        budget_expect(&import->budget, (uint64_t)st.st_size);
        return archive_import(import, fd, err);
    }
    return err_set(err, ERR_INVALID, "'%s' is neither a directory nor an archive",
                   import_label(path).text);
}

/* Writes the settings of the image and those of the source, which win. */
static int settings_write(struct import *import, const struct template_source *source,
                          struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings both = { .object = NULL };
    cleanup_json json_t *object = NULL;
    int r;

    if (!import->settings.object)
        return source->settings ? template_settings_write_at(import->fd, source->settings, err) : 0;
    object = json_copy(import->settings.object);
    if (source->settings)
        (void)json_object_update(object, source->settings->object);
    r = template_settings_parse(object, &both, err);
    return r < 0 ? r : template_settings_write_at(import->fd, &both, err);
}

/* Renames the complete template to its name. */
static int import_publish(struct import *import, const struct template_source *source,
                          struct template_meta *ret_meta, struct err *err)
{
    const char *name = source->name;
    int templates_fd = import->store->templates_fd;
    struct template_meta meta = {
        .size_bytes = import->budget.bytes,
        .files = import->budget.files,
        .created_at = time(NULL),
    };
    int r;

    memcpy(meta.base, import->base, sizeof(meta.base));
    if (source->digest)
        (void)snprintf(meta.digest, sizeof(meta.digest), "%s", source->digest);
    if (meta.files == 0)
        return err_set(err, ERR_INVALID, "the template is empty");
    r = settings_write(import, source, err);
    if (r == 0)
        r = import_seal(import, &meta, err);
    if (r < 0)
        return r;
    if (renameat2(templates_fd, import->temp, templates_fd, name, RENAME_NOREPLACE) < 0)
        return errno == EEXIST ? err_set(err, ERR_EXISTS, "template '%s' already exists", name)
                               : err_sys(err, -errno, "rename the template");
    import->temp[0] = '\0';
    if (fsync(templates_fd) < 0)
        return err_sys(err, -errno, "flush the name of template '%s'", name);
    *ret_meta = meta;
    return 0;
}

int template_import(struct store *store, const struct template_source *source,
                    struct template_info *ret, struct err *err)
{
    cleanup_with(import_done) struct import import =
        IMPORT_INIT(store, store->template_bytes_max, store->template_files_max);
    struct template_meta meta = { 0 };
    int r = template_name_check(store, source->name, err);

    if (r < 0)
        return r;
    import.budget.progress = source->progress;
    import.budget.context = source->context;
    if (import_start(&import, err) < 0 || source_import(&import, source, err) < 0)
        return err_wrap(err, "import '%s'", source->name);
    budget_report(&import.budget);
    if (import_publish(&import, source, &meta, err) < 0)
        return err_wrap(err, "import '%s'", source->name);
    *ret = (struct template_info){
        .size_bytes = meta.size_bytes,
        .files = meta.files,
        .created_at = meta.created_at,
    };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", source->name);
    memcpy(ret->digest, meta.digest, sizeof(ret->digest));
    return 0;
}
