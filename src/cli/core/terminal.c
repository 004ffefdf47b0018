// SPDX-License-Identifier: Apache-2.0
#include "cli/core/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_make_raw(struct terminal *terminal)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
        return;
    raw = terminal->before;
    cfmakeraw(&raw);
    terminal->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
    terminal->is_raw = false;
}

void terminal_size(uint32_t *ret_rows, uint32_t *ret_columns)
{
    struct winsize size = { .ws_row = 0 };

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    *ret_rows = size.ws_row > 0 ? size.ws_row : 24;
    *ret_columns = size.ws_col > 0 ? size.ws_col : 80;
}

bool terminal_is_dumb(void)
{
    const char *term = getenv("TERM");

    return !term || strcmp(term, "dumb") == 0;
}

bool terminal_has_colours(int fd)
{
    const char *none = getenv("NO_COLOR");

    return !(none && *none) && isatty(fd) == 1 && !terminal_is_dumb();
}
