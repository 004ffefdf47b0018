// SPDX-License-Identifier: Apache-2.0
#include "host/observe/doctor_fix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "host/core/config.h"
#include "host/core/sysctl.h"
#include "kernel/sockets.h"
#include "store/command.h"

enum { MODULE_TIMEOUT_MS = 30 * 1000 };

/* Reports a setting that has another value now, or cannot get it. */
static void setting_tell(const char *name, long long before, const struct err *err, char *text,
                         size_t size)
{
    char path[64];
    long long now = before;

    (void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
    (void)file_read_number_at(AT_FDCWD, path, &now);
    if (now != before)
        (void)snprintf(text, size, "set %s from %lld to %lld until the next boot", name, before,
                       now);
    else if (err->msg[0])
        (void)snprintf(text, size, "cannot set %s", name);
}

void doctor_fix_files(const struct config *config, char *text, size_t size)
{
    struct err err = { 0 };
    long long before = 0;

    (void)file_read_number_at(AT_FDCWD, "/proc/sys/fs/file-max", &before);
    (void)sysctl_check_files(config, true, &err);
    setting_tell("fs/file-max", before, &err, text, size);
}

void doctor_fix_stamps(const struct config *config, char *text, size_t size)
{
    struct err err = { 0 };
    long long before = 0;

    (void)config;
    (void)file_read_number_at(AT_FDCWD, "/proc/sys/net/core/tstamp_allow_data", &before);
    (void)sysctl_check_stamps(true, &err);
    setting_tell("net/core/tstamp_allow_data", before, &err, text, size);
}

void doctor_fix_guard(const struct config *config, char *text, size_t size)
{
    static const char *const args[] = { "modprobe", "-a",       "inet_diag", "tcp_diag",
                                        "udp_diag", "raw_diag", NULL };
    struct command_result result;
    uint64_t bytes;
    int r;

    (void)config;
    if (sockets_read_uncharged(&bytes) == 0)
        return;
    r = command_run(args, MODULE_TIMEOUT_MS, NULL, &result);
    if (r == 0 && result.status == 0)
        (void)snprintf(text, size, "loaded the modules inet_diag, tcp_diag, udp_diag and raw_diag");
    else
        (void)snprintf(text, size, "cannot load the modules of inet_diag: %.100s",
                       r < 0 ? strerror(-r) : result.stderr_text);
    text[strcspn(text, "\n")] = '\0';
}

/* Appends a sentence about a directory that did not exist. */
static void directory_make(const char *path, mode_t mode, char *text, size_t size)
{
    size_t len = strlen(text);
    int r;

    if (access(path, F_OK) == 0)
        return;
    r = tree_make(path, mode);
    (void)snprintf(text + len, size - len, "%s%s %s%s%s", len > 0 ? "; " : "",
                   r < 0 ? "cannot make" : "made", path, r < 0 ? ": " : "",
                   r < 0 ? strerror(-r) : "");
}

void doctor_fix_state(const struct config *config, char *text, size_t size)
{
    directory_make(config->state, 0700, text, size);
    directory_make(config->run, 0755, text, size);
}
