/* A process and everything that it has started, where no control group holds them together. */
#pragma once

#include <sys/types.h>

/* Sends a signal to the process, to its descendants, and to what is in a session of one of these.
 * They are stopped first, until no new one is found, so that none escapes by a fork or because its
 * parent ends; those that do not end are continued. A process that has
 * left its session and whose parents have all ended is not found. The process itself may have
 * ended, but not been forgotten: its number is still that of its session. */
void tree_signal(pid_t pid, int signal);
