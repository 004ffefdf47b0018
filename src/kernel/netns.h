/* The network namespace of the calling process. */
#pragma once

/* Brings the loopback interface up. Returns 0 or -errno. */
int netns_loopback_up(void);
