/* The descriptors that a shell inherits to receive its commands. See guest/shell/shell.c. */
#pragma once

/* bash reads commands in a trap and also has a terminal; a plain sh (dash, busybox) reads them as
 * its script. */
enum shell_kind { SHELL_NONE, SHELL_BASH, SHELL_SH, SHELL_KINDS };

/* Descriptor numbers of bash: unlikely to be used by scripts, and below 255, which bash uses
 * itself. */
enum {
    SHELL_BASH_OUT = 240,
    SHELL_BASH_ERR,
    SHELL_BASH_STATUS,
    SHELL_BASH_CONTROL, /* sourced by the trap; initially, the commands that set the trap */
    SHELL_BASH_TEXT,
    SHELL_BASH_CODE,
    SHELL_BASH_END
};
#define SHELL_BASH_RC "/proc/self/fd/243"

/* Descriptor numbers of a plain sh, which supports only one-digit redirections. Its script is not
 * its stdin, because busybox would take a signal for the end of that. */
enum {
    SHELL_SH_SCRIPT = 4,
    SHELL_SH_CODE,
    SHELL_SH_TEXT,
    SHELL_SH_OUT,
    SHELL_SH_ERR,
    SHELL_SH_STATUS,
    SHELL_SH_END
};
#define SHELL_SH_SCRIPT_PATH "/proc/self/fd/4"
