// SPDX-License-Identifier: Apache-2.0
/* Creates a shell's pipes and memory files, at the descriptor numbers of wire/shell.h. shell.c
 * describes how they are used. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "guest/guest.h"
#include "guest/shell/shell.h"

static const char rc[] = "trap '. /proc/self/fd/243' WINCH\n"
                         ">| /proc/self/fd/243\n"
                         "\\builtin echo 0 0 >&242\n";

static int memfd_open(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Only our end is non-blocking. */
static int open_pipe(int *ret_ours, int *ret_shells, bool is_for_reading)
{
    int fds[2], ours = is_for_reading ? 0 : 1;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *ret_ours = fds[ours];
    *ret_shells = fds[1 - ours];
    return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_files(struct shell *shell, int *control, int *text, int *code)
{
    shell->text_fd = memfd_open("command");
    shell->code_fd = memfd_open("status");
    if (shell->kind == SHELL_BASH)
        shell->control_fd = memfd_open("control");
    if (shell->text_fd < 0 || shell->code_fd < 0 ||
        (shell->kind == SHELL_BASH && shell->control_fd < 0))
        return -EMFILE;
    *text = fcntl(shell->text_fd, F_DUPFD_CLOEXEC, 3);
    *code = fcntl(shell->code_fd, F_DUPFD_CLOEXEC, 3);
    if (shell->kind == SHELL_BASH)
        *control = fcntl(shell->control_fd, F_DUPFD_CLOEXEC, 3);
    if (*text < 0 || *code < 0 || (shell->kind == SHELL_BASH && *control < 0))
        return -EMFILE;
    return shell->kind == SHELL_BASH ? pwrite_all(shell->control_fd, rc, strlen(rc), 0) : 0;
}

/* The slot of the descriptor that the shell has under this number. */
static int *side_of(struct shell_ends *ends, int number)
{
    return &ends->side[number - ends->side_first];
}

static int open_bash(struct shell_ends *ends)
{
    int r;

    ends->side_first = SHELL_BASH_OUT;
    ends->side_count = SHELL_BASH_END - SHELL_BASH_OUT;
    r = open_pipe(&ends->out[0], side_of(ends, SHELL_BASH_OUT), true);
    if (r == 0)
        r = open_pipe(&ends->out[1], side_of(ends, SHELL_BASH_ERR), true);
    if (r == 0)
        r = open_pipe(&ends->shell->status.fd, side_of(ends, SHELL_BASH_STATUS), true);
    return r < 0 ? r
                 : open_files(ends->shell, side_of(ends, SHELL_BASH_CONTROL),
                              side_of(ends, SHELL_BASH_TEXT), side_of(ends, SHELL_BASH_CODE));
}

static int open_sh(struct shell_ends *ends)
{
    static const char first[] = "echo 0 0 >&9\n";
    int r;

    ends->side_first = SHELL_SH_SCRIPT;
    ends->side_count = SHELL_SH_END - SHELL_SH_SCRIPT;
    r = open_pipe(&ends->out[0], side_of(ends, SHELL_SH_OUT), true);
    if (r == 0)
        r = open_pipe(&ends->out[1], side_of(ends, SHELL_SH_ERR), true);
    if (r == 0)
        r = open_pipe(&ends->shell->status.fd, side_of(ends, SHELL_SH_STATUS), true);
    if (r == 0)
        r = open_pipe(&ends->shell->script_fd, side_of(ends, SHELL_SH_SCRIPT), false);
    if (r == 0 && write(ends->shell->script_fd, first, strlen(first)) < 0)
        r = -errno;
    return r < 0 ? r
                 : open_files(ends->shell, NULL, side_of(ends, SHELL_SH_TEXT),
                              side_of(ends, SHELL_SH_CODE));
}

int shell_open(enum shell_kind kind, struct shell_ends *ret)
{
    struct shell *shell = xcalloc(1, sizeof(*shell));

    shell->kind = kind;
    shell->status = (struct watch){ .kind = WATCH_SHELL, .fd = -EBADF };
    shell->control_fd = shell->text_fd = shell->code_fd = shell->script_fd = -EBADF;
    ret->shell = shell;
    return kind == SHELL_BASH ? open_bash(ret) : open_sh(ret);
}

void shell_ends_done(struct shell_ends *ends)
{
    for (int i = 0; i < SHELL_SIDE_MAX; i++)
        cleanup_close_fd(&ends->side[i]);
    cleanup_close_fd(&ends->out[0]);
    cleanup_close_fd(&ends->out[1]);
    shell_free(NULL, ends->shell);
}

void shell_free(struct guest *guest, struct shell *shell)
{
    if (!shell)
        return;
    if (guest)
        watch_set(guest->epoll_fd, &shell->status, 0);
    (void)fd_close(shell->status.fd);
    (void)fd_close(shell->control_fd);
    (void)fd_close(shell->text_fd);
    (void)fd_close(shell->code_fd);
    (void)fd_close(shell->script_fd);
    free(shell);
}
