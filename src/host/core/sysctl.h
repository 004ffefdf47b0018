/* Settings of the kernel for the whole machine that sandboxes depend on. */
#pragma once

#include <stdbool.h>

struct config;
struct err;

/* Checks that fs.file-max is so large that the memory of sandboxes, and not this number, limits
 * their open files. With `changes`, raises it first; otherwise a value that can be raised is right.
 * Fails with the value and a remedy. */
int sysctl_check_files(const struct config *config, bool changes, struct err *err);

/* Checks that the kernel keeps no sent data for time stamps (net.core.tstamp_allow_data), in the
 * same way. Where every network namespace has a value of its own, holt-init sets it. */
int sysctl_check_stamps(bool changes, struct err *err);
