// SPDX-License-Identifier: Apache-2.0
/* The file that records where the label's groups were created: a line "NAME PATH" for each
 * hierarchy, after a first line that identifies the file. Paths begin with "/" and are below the
 * mount of their hierarchy. It is not synced: the groups do not survive a crash of the machine
 * either. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "kernel/cgroup/cgroup_internal.h"

#define TITLE "holt control groups 1"

enum { FILE_BYTES_MAX = 4096 };

const char *const cgroup_hierarchy_names[CGROUP_HIERARCHIES] = {
    [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids",
    [CGROUP_CPU] = "cpu",
    [CGROUP_UNIFIED] = "unified",
};

static bool read_line(const char *line, struct cgroup_locations *locations)
{
    for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
        size_t len = strlen(cgroup_hierarchy_names[i]);
        const char *path = line + len + 1;

        if (strncmp(line, cgroup_hierarchy_names[i], len) != 0 || line[len] != ' ')
            continue;
        if (*path != '/' || strlen(path) >= sizeof(locations->path[i]) || locations->path[i][0])
            return false;
        (void)snprintf(locations->path[i], sizeof(locations->path[i]), "%s", path);
        return true;
    }
    return false;
}

/* A truncated file lacks its last newline, or lines; one with NUL bytes was never complete. */
static bool read_text(struct buf *text, struct cgroup_locations *locations)
{
    char *save = NULL, *line;

    if (text->len == 0 || text->data[text->len - 1] != '\n' || memchr(text->data, '\0', text->len))
        return false;
    line = strtok_r(text->data, "\n", &save);
    if (!line || strcmp(line, TITLE) != 0)
        return false;
    while ((line = strtok_r(NULL, "\n", &save)))
        if (!read_line(line, locations))
            return false;
    return true;
}

void cgroup_locations_read(const char *file, struct cgroup_locations *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    struct cgroup_locations locations = { 0 };
    bool is_complete = file_read_at(AT_FDCWD, file, &text) == 0 && read_text(&text, &locations);

    *ret = is_complete ? locations : (struct cgroup_locations){ 0 };
}

int cgroup_locations_write(const char *file, const struct cgroup_locations *locations)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    cleanup_free char *temporary = xasprintf("%s.new", file);
    int r = buf_printf(&text, TITLE "\n");

    for (int i = 0; r == 0 && i < CGROUP_HIERARCHIES; i++)
        if (locations->path[i][0])
            r = buf_printf(&text, "%s %s\n", cgroup_hierarchy_names[i], locations->path[i]);
    if (r == 0)
        r = file_create_at(AT_FDCWD, temporary, 0600, text.data);
    if (r == 0 && rename(temporary, file) < 0)
        r = -errno;
    return r;
}
