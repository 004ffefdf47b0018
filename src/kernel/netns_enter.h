/* Network namespaces of other processes, for the daemon. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Identifies the namespace of the calling thread; 0 if it is unknown. */
ino_t netns_id(void);

/* Moves the calling thread to the namespace of a process (a pidfd), or to a namespace. Returns 0 or
 * -errno. */
int netns_enter(int fd);

/* Returns whether every namespace has its own value of a setting: "net/core/somaxconn". Starts a
 * thread for a moment. */
bool netns_has_own(const char *setting);
