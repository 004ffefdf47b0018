/* Where a shell has its side of the channel that its commands go over: descriptors that it
 * inherits. See guest/shell/shell.c. */
#pragma once

/* bash reads commands in a trap and has a terminal beside that; a plain sh (dash, busybox) reads
 * them as its script. */
enum shell_kind { SHELL_NONE, SHELL_BASH, SHELL_SH, SHELL_KINDS };

/* The numbers of the descriptors of bash: out of everybody's way, and below 255, which bash likes.
 */
enum {
    SHELL_BASH_OUT = 240,
    SHELL_BASH_ERR,
    SHELL_BASH_STATUS,
    SHELL_BASH_CONTROL, /* what the trap reads; at first, the commands that set it */
    SHELL_BASH_TEXT,
    SHELL_BASH_CODE,
    SHELL_BASH_END
};
#define SHELL_BASH_RC "/proc/self/fd/243"

/* Of a plain sh, which knows redirections of one digit only. Its script is not its stdin: busybox
 * would take a signal for the end of that. */
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
