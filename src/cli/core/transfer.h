/* A progress line for a call that moves the files of a sandbox to or from object storage: a thread
 * asks the daemon how far it is, over a connection of its own. */
#pragma once

#include "base/thread.h"
#include "cli/core/progress.h"

struct transfer_watch {
    struct progress progress;
    const char *sandbox;
    struct worker worker;
};

/* Starts it, if there is a terminal. The text stays valid until transfer_watch_end. */
void transfer_watch_begin(struct transfer_watch *watch, const char *label, const char *sandbox);

/* Stops it, and clears the line. */
void transfer_watch_end(struct transfer_watch *watch);
