/* The name of a sandbox, which can change while another thread reads it for an event. Threads that
 * hold the lock of the host or of the sandbox may read it directly. */
#pragma once

#include "host/sandbox/info.h"

/* Copies a name that is in use. */
void sandbox_name_copy(const char *name, char ret[SANDBOX_NAME_MAX + 1]);

/* Changes a name that is in use. The caller holds the locks of the host and of the sandbox. */
void sandbox_name_set(char name[SANDBOX_NAME_MAX + 1], const char *text);
