/* Runs what a page of the documentation tells people to run. */
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"

enum { DOC_PAGE_BYTES_MAX = 1 << 20 };

/* Gives the page's first block of "sh" to sh in a directory, and returns what it printed. */
static inline const char *doc_script_run(const char *page_path, int dir_fd)
{
    static const char *const before = "\n```sh\n";
    static char printed[1024];
    cleanup_with(buf_done) struct buf page = BUF_INIT(DOC_PAGE_BYTES_MAX);
    char *script, *end;
    int out[2];
    ssize_t n;
    pid_t pid;

    CHECK(file_read_at(AT_FDCWD, page_path, &page) == 0, "(%s)", page_path);
    script = strstr(page.data, before);
    CHECK(script);
    script += strlen(before);
    end = strstr(script, "```");
    CHECK(end);
    *end = '\0';
    CHECK(pipe2(out, O_CLOEXEC) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (fchdir(dir_fd) == 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            (void)execlp("sh", "sh", "-c", script, (char *)NULL);
        _exit(1);
    }
    (void)close(out[1]);
    n = read_full(out[0], printed, sizeof(printed) - 1);
    CHECK(n >= 0);
    printed[n] = '\0';
    (void)close(out[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
    return printed;
}
