// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "store/bundle/tar_out.h"

static int text_add(void *context, const void *data, size_t len)
{
    return buf_add(context, data, len);
}

/* Writes one entry without data, and reads it back with libarchive, into *ret. */
static struct archive *entry_pass(const struct tar_node *node, struct buf *text,
                                  struct archive_entry **ret)
{
    cleanup_with(tar_out_done) struct tar_out out = TAR_OUT_INIT(text_add, text);
    struct archive *archive = archive_read_new();

    CHECK(tar_out_xattr(&out, "user.a", "1\0\n", 3) == 0);
    CHECK(tar_out_header(&out, node) == 0);
    CHECK(tar_out_end(&out) == 0);
    CHECK(text->len % TAR_BLOCK == 0);
    CHECK(archive_read_support_format_tar(archive) == ARCHIVE_OK);
    CHECK(archive_read_open_memory(archive, text->data, text->len) == ARCHIVE_OK);
    CHECK(archive_read_next_header(archive, ret) >= ARCHIVE_WARN);
    return archive;
}

static void entry_is_kept(const struct tar_node *node)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct archive_entry *entry = NULL;
    struct archive *archive = entry_pass(node, &text, &entry);
    const char *name, *path = archive_entry_pathname(entry);
    const void *value;
    size_t len, path_len = strlen(node->path);

    CHECK(strncmp(path, node->path, path_len) == 0);
    CHECK(path[path_len] == '\0' || (node->type == '5' && strcmp(path + path_len, "/") == 0));
    CHECK(archive_entry_perm(entry) == (node->mode & 07777));
    CHECK(archive_entry_uid(entry) == node->uid && archive_entry_gid(entry) == node->gid);
    CHECK(archive_entry_mtime(entry) == node->mtime.tv_sec);
    CHECK(archive_entry_mtime_nsec(entry) == node->mtime.tv_nsec);
    CHECK((uint64_t)archive_entry_size(entry) == node->size);
    CHECK(archive_entry_xattr_reset(entry) == 1);
    CHECK(archive_entry_xattr_next(entry, &name, &value, &len) == ARCHIVE_OK);
    CHECK(strcmp(name, "user.a") == 0 && len == 3 && memcmp(value, "1\0\n", 3) == 0);
    if (node->type == '2')
        CHECK(strcmp(archive_entry_symlink(entry), node->link) == 0);
    CHECK(archive_read_free(archive) == ARCHIVE_OK);
}

static void short_and_long_names_are_kept(void)
{
    static const size_t lengths[] = { 1, 99, 100, 101, 255, 4000 };

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        char path[PATH_MAX];

        memset(path, 'x', lengths[i]);
        path[lengths[i]] = '\0';
        entry_is_kept(&(struct tar_node){ .path = path, .type = '0', .mode = 0644 });
        entry_is_kept(&(struct tar_node){ .path = path, .type = '5', .mode = 01755 });
        entry_is_kept(&(struct tar_node){ .path = "a", .link = path, .type = '2', .mode = 0777 });
    }
}

static void numbers_that_a_header_cannot_have_are_kept(void)
{
    entry_is_kept(&(struct tar_node){
        .path = "a", .type = '0', .mode = 06755, .uid = 65535, .gid = 65535, .size = 1ULL << 40 });
    entry_is_kept(&(struct tar_node){
        .path = "a", .type = '0', .mtime = { .tv_sec = 1795037672, .tv_nsec = 1 } });
    entry_is_kept(&(struct tar_node){
        .path = "a", .type = '0', .mtime = { .tv_sec = 1LL << 34, .tv_nsec = 999999999 } });
    entry_is_kept(&(struct tar_node){ .path = "a", .type = '0', .mtime = { .tv_sec = -2 } });
}

static void the_same_entries_give_the_same_bytes(void)
{
    const struct tar_node node = { .path = "a", .type = '0', .mtime = { 5, 7 } };
    cleanup_with(buf_done) struct buf first = BUF_INIT(1 << 20), second = BUF_INIT(1 << 20);
    struct archive_entry *entry;

    CHECK(archive_read_free(entry_pass(&node, &first, &entry)) == ARCHIVE_OK);
    CHECK(archive_read_free(entry_pass(&node, &second, &entry)) == ARCHIVE_OK);
    CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
}

static void an_attribute_that_would_be_another_is_refused(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);
    cleanup_with(tar_out_done) struct tar_out out = TAR_OUT_INIT(text_add, &text);

    CHECK(tar_out_xattr(&out, "user.a=b", "", 0) < 0);
    CHECK(text.len == 0);
}

int main(void)
{
    RUN(short_and_long_names_are_kept);
    RUN(numbers_that_a_header_cannot_have_are_kept);
    RUN(the_same_entries_give_the_same_bytes);
    RUN(an_attribute_that_would_be_another_is_refused);
    return 0;
}
