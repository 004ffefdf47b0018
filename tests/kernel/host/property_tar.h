/* Reads all files of a sandbox from a tar archive that a process in it writes. */
#pragma once

#include "kernel/host/host_world.h"
#include "kernel/host/property_node.h"

enum { TAR_BLOCK = 512, TAR_MAX = 1 << 20 };

/* The relevant fields of a ustar header. */
struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char rest[255];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

static inline size_t tar_node(const char *name)
{
    char path[101];
    size_t len = strnlen(name, 100);

    while (len > 0 && name[len - 1] == '/')
        len--;
    memcpy(path, name, len);
    path[len] = '\0';
    return node_find(path);
}

static inline const char *tar_number(const char *field, size_t size, unsigned long *ret)
{
    char text[16] = "";

    memcpy(text, field, size);
    *ret = strtoul(text, NULL, 8);
    return text[0] ? field : NULL;
}

static inline void tar_fill(struct files *tree, size_t node, const struct tar_header *header,
                            const char *data)
{
    struct node *it = &tree->nodes[node];
    unsigned long mode, size;

    CHECK(tar_number(header->mode, sizeof(header->mode), &mode));
    CHECK(tar_number(header->size, sizeof(header->size), &size));
    *it = (struct node){ .mode = (unsigned)mode & 07777, .inode = ++tree->last_inode };
    if (header->type == '1') {
        *it = tree->nodes[tar_node(header->link)];
    } else if (header->type == '2') {
        it->kind = NODE_LINK;
        (void)snprintf(it->text, sizeof(it->text), "%.*s", TEXT_MAX - 1, header->link);
    } else if (header->type == '5') {
        it->kind = NODE_DIR;
    } else {
        it->kind = NODE_FILE;
        CHECK(size < sizeof(it->text), "(a file of %lu bytes)", size);
        memcpy(it->text, data, size);
    }
}

/* Reads the files below both directories of the model. */
static inline void tar_read(struct sandbox *sandbox, struct files *ret)
{
    static const char command[] = "exec /bin/busybox tar -C / -c -f - data workspace";
    cleanup_with(buf_done) struct buf output = BUF_INIT(TAR_MAX);
    size_t at = 0;

    *ret = (struct files){ .last_inode = 0 };
    CHECK(world_sh(sandbox, command, &output) == 0, "(%.*s)", (int)output.len, output.data);
    while (at + TAR_BLOCK <= output.len && output.data[at]) {
        const struct tar_header *header = (const void *)(output.data + at);
        unsigned long size;
        size_t node = tar_node(header->name);

        CHECK(node < NODES, "(there is a file '%.100s')", header->name);
        CHECK(tar_number(header->size, sizeof(header->size), &size));
        tar_fill(ret, node, header, output.data + at + TAR_BLOCK);
        at += TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        CHECK(at <= output.len);
    }
}

/* Compares hard links too. But overlayfs gives a link to a file that it copied from another
 * filesystem a different inode number. */
static inline bool files_links_are_alike(const struct files *found, const struct files *wanted,
                                         size_t node)
{
    const struct node *is = &found->nodes[node], *should = &wanted->nodes[node];

    for (size_t i = 0; is->kind == NODE_FILE && i < NODES; i++) {
        bool is_one = found->nodes[i].inode == is->inode;

        if (found->nodes[i].kind == NODE_FILE &&
            is_one != (wanted->nodes[i].inode == should->inode) &&
            (is_one || !should->is_inherited))
            return false;
    }
    return true;
}

static inline void files_check(struct sandbox *sandbox, const struct files *wanted)
{
    static const char *const kinds[] = { "nothing", "file", "directory", "link" };
    struct files found;
    char path[PATH_BYTES];

    tar_read(sandbox, &found);
    for (size_t i = 0; i < NODES; i++) {
        const struct node *is = &found.nodes[i], *should = &wanted->nodes[i];

        CHECK(node_is_alike(is, should),
              "(%s is a %s of mode %o with '%s', not a %s of %o with '%s')", node_path(i, path),
              kinds[is->kind], is->mode, is->text, kinds[should->kind], should->mode, should->text);
        CHECK(files_links_are_alike(&found, wanted, i), "(hard links of %s)", node_path(i, path));
    }
}
