/* The template of all sandboxes, in the model and as files. */
#pragma once

#include <sys/stat.h>

#include "kernel/host/host_world.h"
#include "kernel/host/property_model.h"

/* Makes the files of the template's model in its root. */
static inline void make_data(const char *dir)
{
    char path[PATH_BYTES], whole[128];
    FILE *file;

    for (size_t i = 0; i < NODES; i++) {
        const struct node *node = &template_tree.nodes[i];

        (void)snprintf(whole, sizeof(whole), "%s/root%s", dir, node_path(i, path));
        if (node->kind == NODE_DIR)
            CHECK(mkdir(whole, 0755) == 0, "(%s)", whole);
        if (node->kind != NODE_FILE)
            continue;
        file = fopen(whole, "we");
        CHECK(file && fputs(node->text, file) >= 0 && fclose(file) == 0);
    }
}

static inline void make_template(const char *dir)
{
    static const char *const own[] = { "", "/proc", "/sys", "/dev" };
    static const size_t dirs[] = { 0, 1, 4, 2 }, files[] = { 3, 5, 13, 14, 7, 8 };
    char path[128], text[16];

    template_tree = (struct files){ .last_inode = 0 };
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
        files_make(&template_tree, dirs[i], NODE_DIR, "");
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        (void)snprintf(text, sizeof(text), "t%02zu", files[i]);
        files_make(&template_tree, files[i], NODE_FILE, text);
        template_tree.nodes[files[i]].is_inherited = true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        (void)snprintf(path, sizeof(path), "%.80s/root%s", dir, own[i]);
        CHECK(mkdir(path, 0755) == 0);
    }
    make_data(dir);
    world_import("small");
}
