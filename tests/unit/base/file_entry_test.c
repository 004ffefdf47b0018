// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/files/file_entry.h"
#include "check.h"

static void paths_begin_at_home(void)
{
    static const struct {
        const char *path, *wanted;
    } cases[] = {
        { "", "/home/me" },
        { ".", "/home/me" },
        { "~", "/home/me" },
        { "~/a//b/", "/home/me/a/b" },
        { "~a", "/home/me/~a" },
        { "a/./b", "/home/me/a/b" },
        { "../../..", "/" },
        { "../../../etc", "/etc" },
        { "/", "/" },
        { "//a/../b", "/b" },
        { "/..a/b..", "/..a/b.." },
    };
    char path[ENTRY_PATH_MAX + 1];
    static char large[ENTRY_PATH_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK(entry_path_from("/home/me", cases[i].path, path) == 0);
        CHECK_TEXT(path, cases[i].wanted);
    }
    memset(large, 'a', sizeof(large) - 1);
    large[0] = '/';
    CHECK(entry_path_from("/home/me", large, path) == -ENAMETOOLONG);
    large[ENTRY_PATH_MAX] = '\0';
    CHECK(entry_path_from("/home/me", large, path) == 0);
    CHECK_TEXT(path, large);
}

int main(void)
{
    RUN(paths_begin_at_home);
    return 0;
}
