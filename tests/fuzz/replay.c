// SPDX-License-Identifier: Apache-2.0
/* Runs a fuzz target over its corpus as an ordinary test, without libFuzzer. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { INPUT_MAX = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dir_close(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static int replay(int dir_fd, const char *name)
{
    cleanup_with(buf_done) struct buf input = BUF_INIT(INPUT_MAX);
    int r = file_read_at(dir_fd, name, &input);

    if (r < 0) {
        (void)printf("not ok: cannot read %s\n", name);
        return r;
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)input.data, input.len);
    return 0;
}

int main(int argc, char **argv)
{
    cleanup_with(dir_close) DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    const struct dirent *entry;
    int count = 0;

    if (!dir) {
        (void)printf("not ok: usage: replay DIRECTORY\n");
        return 1;
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay(dirfd(dir), entry->d_name) < 0)
            return 1;
        count++;
    }
    if (count == 0) {
        (void)printf("not ok: no inputs in %s\n", argv[1]);
        return 1;
    }
    (void)printf("ok: %d inputs of %s\n", count, argv[1]);
    return 0;
}
