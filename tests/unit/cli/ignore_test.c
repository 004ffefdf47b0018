/* .dockerignore: the last pattern that matches a path or a directory above it decides. */
#include <stddef.h>

#include "base/cleanup.h"
#include "check.h"
/* The tests link no module cli, because it is a program. */
#include "cli/core/ignore.c"

static void patterns_decide(void)
{
    static const struct {
        const char *text, *path;
        bool is_left_out;
    } cases[] = {
        { "", "a", false },
        { "a", "a", true },
        { "a", "b", false },
        { "a", "b/a", false },
        { "a", "a/b/c", true },
        { "/a/", "a/b", true },
        { "./a", "a", true },
        { "*.log", "x.log", true },
        { "*.log", "d/x.log", false },
        { "**/*.log", "x.log", true },
        { "**/*.log", "d/e/x.log", true },
        { "a/**", "a/b", true },
        { "a/**/c", "a/b/d/c", true },
        { "a/**/c", "a/c", true },
        { "*/b", "a/b/c", true },
        { "?", "ab", false },
        { "# a\na#", "a#", true },
        { "*\n!keep", "keep/x", false },
        { "*\n!keep", "other", true },
        { "d\n!d/x\nd/x", "d/x", true },
        { ".", "a", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ignore *ignore = ignore_new(cases[i].text);

        CHECK(ignore_has(ignore, cases[i].path) == cases[i].is_left_out);
        ignore_free(ignore);
    }
    CHECK(!ignore_has(NULL, "a"));
}

int main(void)
{
    RUN(patterns_decide);
    return 0;
}
