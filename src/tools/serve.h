/* A tool worker's side of its socket: one request after the other. */
#pragma once

/* Says HELLO, then does what it is asked until the daemon hangs up: 0, or -errno when the daemon
 * said what it should not, or memory is out. */
int tools_serve(int fd);
