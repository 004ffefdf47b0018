/* The network namespace of the calling process. */
#pragma once

/* Brings the loopback device up: 0 or -errno. */
int netns_loopback_up(void);
